"""The metrics of a running application: names and groups of Kafka Streams, values that add up, Prometheus' text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from threading import Event
from time import time
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import kstreams as ks
from kstreams.metrics.catalogue import NODE, TASK, TEMPLATES, THREAD, UPDATER, template_of
from kstreams.metrics.export import exported_name
from kstreams.metrics.opentelemetry import observe
from kstreams.metrics.prometheus import PrometheusCollector
from kstreams.metrics.template import MetricKind, MetricName
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.metrics.measured import ROWS, TEXTS, Ticking, counts, one, restored, slowly
from tests.native.world import WAIT_S, World, until

METRICS = "stream-metrics"


def topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).process_values(Ticking, name="ticking", value=str).filter(slowly)
    counted = words.group_by_key().count("counts")
    counted.to_stream().to("out")
    counted.suppress(ks.Suppressed.until_time_limit(timedelta(hours=1))).to_stream().foreach(lambda key, count: None)
    return builder.build()


@pytest.fixture
def streams(world: World) -> Iterator[KafkaStreams]:
    with restored(world, topology()) as running:
        until(lambda: running.progress().records_out["out"] == 2)
        yield running


def test_what_is_measured_adds_up(streams: KafkaStreams) -> None:
    assert one(streams, METRICS, "state") == "RUNNING"
    assert one(streams, METRICS, "application-id") == "app"
    assert one(streams, METRICS, "alive-stream-threads") == 1
    assert one(streams, METRICS, "failed-stream-threads") == 0
    assert one(streams, THREAD, "process-total") == 3
    assert one(streams, THREAD, "poll-records-max") == 3
    assert one(streams, THREAD, "process-latency-max") >= 200
    assert one(streams, THREAD, "task-created-total") == 1
    assert one(streams, TASK, "dropped-records-total") == 1
    assert one(streams, TASK, "dropped-records-rate") > 0
    assert one(streams, TASK, "stream-time") == 3_000
    assert one(streams, NODE, "dropped-records-by-reason-total", reason="null key or value") == 1
    assert one(streams, NODE, "process-total", processor_node_id="KSTREAM-SOURCE-0000000000") == 3
    assert one(streams, NODE, "words-total", processor_node_id="ticking") == 4
    assert one(streams, "stream-topic-metrics", "records-produced-total", topic_name="out") == 2
    assert one(streams, "stream-topic-metrics", "records-consumed-total", topic_name="in") == 3
    assert one(streams, "stream-topic-metrics", "bytes-consumed-total", topic_name="in") >= 7  # two keys, all values
    assert one(streams, "stream-topic-metrics", "bytes-produced-total", topic_name="out") >= 2 * (1 + 8)
    assert one(streams, "stream-state-metrics", "estimate-num-keys", rocksdb_state_id="counts") >= 2
    assert one(streams, "stream-state-metrics", "estimate-live-data-size", rocksdb_state_id="counts") > 0
    assert (
        one(streams, "stream-state-updater-metrics", "restore-records-total") == 2 + 2
    )  # counts, and what is held back
    assert one(streams, "consumer-fetch-manager-metrics", "records-lag", topic="in", partition="0") == 0
    assert one(streams, "consumer-fetch-manager-metrics", "records-lag-ms", topic="in", partition="0") == 0


def test_what_global_tables_read_and_drop_is_counted(world: World) -> None:
    world.create("in")
    world.create("names")
    world.write("names", ROWS)
    builder = ks.StreamsBuilder()
    names = builder.global_table("names", **TEXTS)
    builder.stream("in", **TEXTS).left_join(
        names, lambda value, name: name, key_selector=lambda key, value: key, value=str
    ).to("out")
    world.create("out")
    with world.streams(builder.build(), poll_ms=5) as streams:
        streams.start()
        of_table: dict[str, str] = {"thread_id": "app-GlobalStreamThread"}
        until(lambda: streams.state is State.RUNNING and one(streams, NODE, "process-total", **of_table) == 3)
        assert one(streams, NODE, "dropped-records-by-reason-total", reason="null key", **of_table) == 1
        world.write("names", [("m", "d", 4_000)])
        until(lambda: one(streams, NODE, "process-total", **of_table) == 4)


def test_the_age_of_records_goes_by_their_timestamps(streams: KafkaStreams) -> None:
    for topic in ("in", "out"):
        oldest = one(streams, NODE, "record-e2e-latency-max", topic_name=topic)
        assert oldest - one(streams, NODE, "record-e2e-latency-min", topic_name=topic) == pytest.approx(
            2_000, abs=1_000
        )
        assert oldest > one(streams, NODE, "record-e2e-latency-avg", topic_name=topic)


def test_who_lags_lags_by_the_age_of_what_it_processed_last(world: World) -> None:
    begun, go_on = Event(), Event()

    def hold(key: str, value: str) -> bool:
        if value == "held":
            begun.set()
            go_on.wait(WAIT_S)
        return True

    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).filter(hold).to("out")
    world.create("in")
    world.create("out")
    world.write("in", [("k", "a", 1_000)])
    with world.streams(builder.build(), poll_ms=5) as running:
        running.start()
        until(lambda: running.progress().records_in == 1)
        world.write("in", [("k", "held", 2_000)])
        assert begun.wait(WAIT_S)
        lag = one(running, "consumer-fetch-manager-metrics", "records-lag", topic="in")
        age_ms = one(running, "consumer-fetch-manager-metrics", "records-lag-ms", topic="in")
        go_on.set()
    assert lag == 1
    assert age_ms == pytest.approx(time() * 1_000 - 1_000, rel=0.01)


def test_what_standbys_follow_is_counted(world: World) -> None:
    world.create("in", 2)
    both = {"num_standby_replicas": 1, "commit_interval_ms": 20, "poll_ms": 5}
    with (
        world.streams(counts(), state_dir=world.folder / "one", **both) as first,
        world.streams(counts(), state_dir=world.folder / "two", **both) as second,
    ):
        first.start()
        second.start()
        until(lambda: [one(each, UPDATER, "standby-updating-tasks") for each in (first, second)] == [1, 1])
        world.write("in", [(key, "a", 1_000) for key in "abcdefgh"])
        until(lambda: sum(followed(first)) + sum(followed(second)) == 8)
        assert one(first, UPDATER, "restore-records-rate") > 0
        assert one(first, UPDATER, "standby-update-ratio") > 0


def followed(streams: KafkaStreams) -> list[float]:
    return [float(value) for name, value in streams.metrics().items() if name[:2] == (TASK, "update-total")]


def test_an_operator_that_takes_long_is_found(streams: KafkaStreams) -> None:
    assert one(streams, NODE, "active-ratio", processor_node_id="KSTREAM-FILTER-0000000002") > 0


def test_prometheus_reads_the_same_values(streams: KafkaStreams) -> None:
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(streams))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value for family in families for sample in family.samples
    }
    assert samples["kafka_streams_stream_thread_metrics_process_total", "app-StreamThread-1"] == 3
    assert samples["kafka_streams_stream_metrics_state_info", "RUNNING", "app"] == 1
    assert samples["kafka_streams_stream_topic_metrics_records_produced_total", "app-StreamThread-1", "out"] == 2


def test_opentelemetry_reads_the_same_values(streams: KafkaStreams) -> None:
    reader = InMemoryMetricReader()
    observe(streams, MeterProvider([reader]).get_meter("kstreams"))
    data = reader.get_metrics_data()
    assert data is not None
    found = {metric.name: metric.data.data_points for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    (total,) = found["kafka_streams_stream_thread_metrics_process_total"]
    assert isinstance(total, NumberDataPoint)
    assert (total.value, dict(total.attributes or {})) == (3, {"thread_id": "app-StreamThread-1"})
    measured = {exported_name(template_of(name)) for name in streams.metrics()}
    assert "kafka_streams_stream_processor_node_metrics_sensor_total" in measured
    assert found.keys() == measured


def context_of(streams: KafkaStreams) -> RuntimeContext:
    assert isinstance(streams._client, RunningClient)
    return streams._client.context


def test_a_scrape_asks_the_home_of_topics_once(streams: KafkaStreams, monkeypatch: pytest.MonkeyPatch) -> None:
    context, asked = context_of(streams), list[Any]()
    ask = context.environment.admin.end_offsets
    monkeypatch.setattr(
        context.environment.admin, "end_offsets", lambda sources: asked.append(sources) or ask(sources), raising=False
    )
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(streams))
    asked.clear()
    generate_latest(registry)
    assert [len(sources) for sources in asked] == [1]


LAG = "consumer-fetch-manager-metrics", "records-lag"


def test_a_home_of_topics_that_does_not_answer_leaves_all_else(
    streams: KafkaStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, context = Event(), context_of(streams)
    monkeypatch.setattr(
        context.environment.admin, "end_offsets", lambda sources: answer.wait(WAIT_S) and {}, raising=False
    )
    begun = time()
    found = {name[:2] for name in streams.metrics()}
    answer.set()
    assert time() - begun < WAIT_S / 4
    assert (THREAD, "process-total") in found
    assert LAG not in found


def test_a_topic_that_is_gone_hides_no_lag_of_others(world: World) -> None:
    hangs, goes_on = Event(), Event()

    def hang(key: Any, value: str) -> None:
        """The thread does not notice meanwhile that the topic is gone, which ends it."""
        hangs.set()
        goes_on.wait(WAIT_S)

    builder = ks.StreamsBuilder()
    for topic in ("in", "gone"):
        world.create(topic)
        builder.stream(topic, **TEXTS).foreach(hang)
    world.write("in", ROWS)
    with world.streams(builder.build(), poll_ms=5) as running:
        running.start()
        assert hangs.wait(WAIT_S)
        try:
            lag = one(running, *LAG, topic="in")
            with world.log() as log, log.admin() as admin:
                admin.delete_topic("gone")
            assert one(running, *LAG, topic="in") == lag
        finally:
            goes_on.set()


def test_counters_never_go_back_while_threads_record(world: World) -> None:
    world.create("in", 2)
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).to("out")
    before: dict[MetricName, Any] = {}
    with world.streams(builder.build(), poll_ms=5, num_stream_threads=2) as running:
        running.start()
        for turn in range(20):
            world.write("in", [(f"k{n}", "v", turn) for n in range(50)])
            now = running.metrics()
            for name, value in before.items():
                template = TEMPLATES.get(name[:2])
                if template is not None and template.kind is MetricKind.COUNTER and name in now:
                    assert now[name] >= value, name
            before = now
        until(lambda: running.progress().records_in == 1_000)

"""The metrics of a running application: names and groups of Kafka Streams, values that add up, Prometheus' text."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from threading import Event
from time import sleep, time
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import kstreams as ks
from kstreams.metrics.opentelemetry import observe
from kstreams.metrics.prometheus import PrometheusCollector
from kstreams.runtime.metrics.catalogue import NODE, TASK, TEMPLATES, THREAD, MetricKind, MetricName
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import WAIT_S, World, until

TEXTS = {"key": str, "value": str}
ROWS = [("k", "a b", 1_000), (None, "c", 2_000), ("l", "a", 3_000)]
METRICS = "stream-metrics"


class Ticking(ks.FixedKeyProcessor[str, str, str]):
    """Counts words in a sensor of its own, and is called by the wall clock."""

    def init(self, context: ks.FixedKeyProcessorContext[str, str]) -> None:
        self.context = context
        self.words = context.metrics.add_sensor("words")
        context.schedule(timedelta(milliseconds=5), ks.PunctuationType.WALL_CLOCK_TIME, lambda now: None)

    def process(self, record: ks.FixedKeyRecord[str, str]) -> None:
        self.words.record(len(record.value.split()))
        self.context.forward(record)


def slowly(key: str, value: str) -> bool:
    sleep(0.2)
    return True


def topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).process_values(Ticking, name="ticking", value=str).filter(slowly)
    counted = words.group_by_key().count("counts")
    counted.to_stream().to("out")
    counted.suppress(ks.Suppressed.until_time_limit(timedelta(hours=1))).to_stream().foreach(lambda key, count: None)
    return builder.build()


def counts() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).group_by_key().count("counts")
    return builder.build()


def counts_of_windows() -> ks.Topology:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=timedelta(seconds=10))
    builder.stream("in", **TEXTS).group_by_key().windowed_by(windows).count("counts")
    return builder.build()


def counts_of_sessions() -> ks.Topology:
    builder = ks.StreamsBuilder()
    windows = ks.SessionWindows(gap=timedelta(seconds=10))
    builder.stream("in", **TEXTS).group_by_key().windowed_by(windows).count("counts")
    return builder.build()


@pytest.fixture
def streams(world: World) -> Iterator[KafkaStreams]:
    """Runs over a changelog whose stores are lost, and has processed all there is."""
    world.create("in")
    world.write("in", ROWS)
    settings: dict[str, Any] = {"commit_interval_ms": 20, "poll_ms": 5, "metrics_recording_level": "DEBUG"}
    settings["metrics_sample_window_ms"] = 3_600_000  # so that nothing of it is over before a test looks
    with world.streams(topology(), **settings) as first:
        first.start(once=True)
        first.wait(60)
    shutil.rmtree(world.settings["state.dir"])
    world.write("in", ROWS)
    with world.streams(topology(), **settings) as running:
        running.start()
        until(lambda: running.progress().records_in == 3 and running.state is State.RUNNING)
        until(lambda: running.progress().records_out["out"] == 2 and one(running, THREAD, "commit-total") > 0)
        yield running


def one(streams: KafkaStreams, group: str, name: str, **tags: str) -> Any:
    wanted = {key.replace("_", "-"): value for key, value in tags.items()}
    found = {
        metric: value
        for metric, value in streams.metrics().items()
        if metric[:2] == (group, name) and wanted.items() <= dict(metric.tags).items()
    }
    assert len(found) == 1, found
    return next(iter(found.values()))


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


def test_what_a_suppress_holds_back_and_lets_go_is_measured(world: World) -> None:
    builder = ks.StreamsBuilder()
    late = ks.Suppressed.until_time_limit(timedelta(seconds=1), name="late")
    builder.table("in", **TEXTS).suppress(late).to_stream().to("out")
    world.create("in")
    world.create("out")
    world.write("in", [("k", "a", 1_000), ("l", "b", 1_100)])
    settings: dict[str, Any] = {"poll_ms": 5, "commit_interval_ms": 20, "metrics_recording_level": "DEBUG"}
    settings["metrics_sample_window_ms"] = 3_600_000
    with world.streams(builder.build(), **settings) as running:

        def measured(name: str) -> float:
            return max((float(value) for metric, value in running.metrics().items() if metric.name == name), default=0)

        running.start()
        until(lambda: measured("suppression-buffer-count-max") == 2)
        assert measured("suppression-emit-total") == 0
        world.write("in", [("m", "c", 9_000)])
        until(lambda: measured("suppression-emit-total") == 2)
        assert measured("suppression-emit-rate") > 0
        assert 0 < measured("suppression-buffer-count-avg") < 2
        assert measured("suppression-buffer-size-max") > measured("suppression-buffer-size-avg") > 0


@pytest.mark.parametrize("build", [counts, counts_of_windows, counts_of_sessions])
def test_look_ups_that_live_values_answer_are_hits(world: World, build: Callable[[], ks.Topology]) -> None:
    world.create("in")
    world.write("in", [("k", "a", 1_000), ("l", "a", 1_000)])
    settings: dict[str, Any] = {"poll_ms": 5, "metrics_recording_level": "DEBUG", "statestore_live_max_bytes": 0}
    settings |= dict.fromkeys(("commit_interval_ms", "first_commit_interval_ms", "metrics_sample_window_ms"), 3_600_000)
    with world.streams(build(), **settings) as first:
        first.start(once=True)
        first.wait(60)
    world.write("in", [("k", "a", 1_500), ("k", "a", 1_600), ("k", "a", 1_700), ("l", "a", 1_800)])
    with world.streams(build(), **settings) as running:
        running.start()
        until(lambda: running.progress().records_in == 4)
        until(lambda: "stream-record-cache-metrics" in {name.group for name in running.metrics()})
        assert one(running, "stream-record-cache-metrics", "hit-ratio-avg", record_cache_id="counts") == 0.5
        assert one(running, "stream-record-cache-metrics", "hit-ratio-max", record_cache_id="counts") <= 1


def test_nobody_counts_look_ups_by_default(world: World) -> None:
    world.create("in")
    world.write("in", ROWS)
    with world.streams(counts(), poll_ms=5) as running:
        running.start()
        until(lambda: running.progress().records_in == 3)
        assert "stream-record-cache-metrics" not in {name.group for name in running.metrics()}


def test_an_operator_that_takes_long_is_found(streams: KafkaStreams) -> None:
    assert one(streams, NODE, "active-ratio", processor_node_id="KSTREAM-FILTER-0000000002") > 0


def test_every_metric_of_the_catalogue_is_there_and_no_other_but_sensors(streams: KafkaStreams) -> None:
    until(lambda: (THREAD, "punctuate-latency-avg") in {name[:2] for name in streams.metrics()})
    found = {name[:2] for name in streams.metrics()}
    assert TEMPLATES.keys() - found == set()
    assert found - TEMPLATES.keys() == {(NODE, f"words-{what}") for what in ("total", "count", "max")}


def test_prometheus_reads_the_same_values(streams: KafkaStreams) -> None:
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(streams))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value for family in families for sample in family.samples
    }
    assert samples["kafka_streams_stream_thread_metrics_process_total", "app-StreamThread-1"] == 3
    assert samples["kafka_streams_stream_metrics_state_info", "RUNNING"] == 1
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
    assert len(found) == len(TEMPLATES)


def test_a_scrape_asks_the_home_of_topics_once(streams: KafkaStreams, monkeypatch: pytest.MonkeyPatch) -> None:
    job, asked = streams._client.job, list[Any]()
    assert job is not None
    ask = job.admin.end_offsets
    monkeypatch.setattr(job.admin, "end_offsets", lambda sources: asked.append(sources) or ask(sources), raising=False)
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(streams))
    asked.clear()
    generate_latest(registry)
    assert [len(sources) for sources in asked] == [1]


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

"""What `metrics.recording.level=DEBUG` adds: store operations, lateness, what is held back, RocksDB's statistics."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import kstreams as ks
from kstreams.metrics.catalogue import CONNECTOR, NODE, SPARK_QUERY, STATE, TASK, TEMPLATES, THREAD, template_of
from kstreams.metrics.debug_sensors import DatabaseSensors
from kstreams.metrics.prometheus import PrometheusCollector
from kstreams.metrics.samples import SampleWindows
from kstreams.runtime.native.lifecycle import State
from kstreams.state.column_family import Statistic
from tests.docs.test_dashboard import IN_ALERTS, IN_PANELS, metrics_in
from tests.native.metrics.measured import ROWS, TEXTS, Ticking, counts, one, restored, slowly
from tests.native.world import World, until


class StoreQueryService(ks.FixedKeyProcessor[str, str, str]):
    """Asks its stores for everything that can be asked of stores."""

    def init(self, context: ks.FixedKeyProcessorContext[str, str]) -> None:
        self.context = context
        self.pairs, self.visits = context.get_state_store("pairs"), context.get_state_store("visits")

    def process(self, record: ks.FixedKeyRecord[str, str]) -> None:
        self.pairs.put_if_absent(record.key, record.value)
        self.pairs.put_all([("a", "1"), ("b", "2")])
        self.pairs.delete("a")
        self.pairs.put("b", self.pairs.get("b"))
        assert dict(self.pairs.range("b", "c")) == dict(self.pairs.prefix_scan("b")) == {"b": "2"}
        assert {"b", record.key} <= {key for key, _ in self.pairs.all()}
        visit = ks.Windowed(record.key, ks.Window(0, 10))
        self.visits.put(visit, record.value)
        assert len(list(self.visits.fetch(record.key))) == 1
        self.visits.remove(visit)
        self.context.forward(record)


def busy_topology() -> ks.Topology:
    """Measures all that can be measured."""
    builder = ks.StreamsBuilder()
    builder.add_state_store(ks.Stores.key_value("pairs", **TEXTS))
    builder.add_state_store(ks.Stores.session("visits", 3_600_000, **TEXTS))
    words = builder.stream("in", **TEXTS).process_values(Ticking, name="ticking", value=str).filter(slowly)
    asked = words.filter(lambda key, value: key is not None).process_values(
        StoreQueryService, stores=["pairs", "visits"], value=str
    )
    seconds = asked.group_by_key().windowed_by(ks.TimeWindows(size=1_000, grace=0))
    counted = seconds.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count("by-second").to_stream()
    counted.foreach(lambda window, count: None)
    words.throttle(1_000_000).to("out")
    late = ks.Suppressed.until_time_limit(timedelta(hours=1))
    words.to_table().suppress(late).to_stream().foreach(lambda key, value: None)
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


def test_what_a_suppress_lets_go_is_counted_though_nobody_takes_it(world: World) -> None:
    builder = ks.StreamsBuilder()
    builder.table("in", **TEXTS).suppress(ks.Suppressed.until_time_limit(timedelta(seconds=1), name="late"))
    world.create("in")
    world.write("in", [("k", "a", 1_000), ("l", "b", 1_100), ("m", "c", 9_000)])
    with world.streams(builder.build(), poll_ms=5, metrics_recording_level="DEBUG") as running:
        running.start()
        until(lambda: running.progress().records_in == 3)
        until(lambda: one(running, NODE, "suppression-emit-total", processor_node_id="late") == 2)
        children = [name.tag("child-node-id") for name in running.metrics() if name.name == "forwarded-records-total"]
        assert children == ["late"]


def test_a_task_that_comes_late_to_a_busy_thread_takes_a_part_of_its_time(world: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).filter(slowly)
    world.create("in", 2)
    settings: dict[str, Any] = {"poll_ms": 5, "metrics_recording_level": "DEBUG", "num_stream_threads": 2}
    with world.streams(builder.build(), **settings) as running:
        running.start()
        world.write("in", [("k", "v", 1), ("k", "v", 2), ("k", "v", 3)], partition=0)
        until(lambda: running.progress().records_in == 3)
        assert running.remove_stream_thread() is not None
        until(lambda: running.state is State.RUNNING)
        world.write("in", [("k", "v", 1)], partition=1)
        until(lambda: running.progress().records_in == 4)
        shares = [value for name, value in running.metrics().items() if name.name == "active-process-ratio"]
        assert sum(map(float, shares)) <= 1.2


def test_late_records_and_final_results_are_measured(world: World) -> None:
    builder = ks.StreamsBuilder()
    seconds = builder.stream("in", **TEXTS).group_by_key().windowed_by(ks.TimeWindows(size=1_000, grace=0))
    counted = seconds.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count("by-second")
    counted.to_stream().foreach(lambda window, count: None)
    world.create("in")
    world.write("in", [("k", "a", 1_000), ("l", "b", 1_100), ("k", "c", 5_000), ("k", "d", 4_000)])
    settings: dict[str, Any] = {"poll_ms": 5, "metrics_sample_window_ms": 3_600_000}
    with world.streams(builder.build(), **settings, metrics_recording_level="DEBUG") as running:
        running.start()
        until(lambda: running.progress().records_in == 4 and running.progress().commits > 0)
        assert one(running, TASK, "record-lateness-max") == 1_000
        assert one(running, TASK, "record-lateness-avg") == 250
        assert one(running, NODE, "window-aggregate-final-emit-total") == 2
        assert one(running, NODE, "window-aggregate-final-emit-rate") > 0
        assert one(running, TASK, "active-process-ratio") == pytest.approx(1, abs=0.3)
        assert one(running, TASK, "process-total") == 4
        assert one(running, TASK, "process-rate") > 0


def test_operations_of_stores_are_timed_by_the_names_of_kafka_streams(world: World) -> None:
    world.create("out")
    with restored(world, busy_topology()) as running:
        for name in ("get", "put", "put-if-absent", "put-all", "delete", "range", "prefix-scan", "all"):
            assert one(running, STATE, f"{name}-rate", state_id="pairs") > 0
        assert one(running, STATE, "fetch-latency-avg", state_id="visits") > 0
        assert one(running, STATE, "remove-latency-max", state_id="visits") > 0
        until(lambda: one(running, STATE, "flush-latency-max", state_id="pairs") > 0)
        assert one(running, STATE, "restore-rate", state_id="pairs") > 0
        assert one(running, STATE, "bytes-written-total") > 0
        assert one(running, STATE, "block-cache-capacity", rocksdb_state_id="pairs") > 0
        assert one(running, TASK, "restore-total") > 0
        assert one(running, TASK, "restore-remaining-records-total") == 0
        assert one(running, TASK, "cache-size-bytes-total") > 0


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


def test_every_metric_of_the_catalogue_is_there_with_its_labels_and_no_other(world: World) -> None:
    world.create("out")
    with restored(world, busy_topology()) as running:
        until(lambda: (THREAD, "punctuate-latency-avg") in {name[:2] for name in running.metrics()})
        metrics = list(running.metrics())
    for metric in metrics:
        assert tuple(label for label, _ in metric.tags) == template_of(metric).labels, metric
    exported = {template_of(metric)[:2] for metric in metrics}
    of_standbys = {(TASK, "update-rate"), (TASK, "update-total"), (TASK, "standby-lag")}
    elsewhere = {metric for metric in TEMPLATES if metric[0].startswith("mirror-") or "-throttle-time-" in metric[1]}
    elsewhere |= {metric for metric in TEMPLATES if metric[0] in (CONNECTOR, SPARK_QUERY)}
    assert TEMPLATES.keys() - exported - elsewhere == of_standbys | OF_FILES
    assert exported <= TEMPLATES.keys()


OF_FILES = {(STATE, f"{name}-time-{what}") for name in ("memtable-flush", "compaction") for what in ("avg", "max")}
BLOCKS = ("data", "index", "filter")
OF_FILES |= {(STATE, f"block-cache-{kind}-hit-ratio") for kind in BLOCKS}


def test_rocksdb_measures_flushes_compactions_and_blocks() -> None:
    names = ("db.flush.micros", "compaction.times.micros", *(f"block.cache.{kind}.hit" for kind in BLOCKS))
    sensors = DatabaseSensors(SampleWindows(30, 2))
    sensors.update(dict.fromkeys(names, Statistic(2, 3_000, 2_000.0)))
    values = {name.name: value for name, value in sensors.values((), monotonic()) if name[:2] in OF_FILES}
    assert values == {
        **dict.fromkeys((f"block-cache-{kind}-hit-ratio" for kind in BLOCKS), 1.0),
        **{f"{name}-time-avg": 1.5 for name in ("memtable-flush", "compaction")},
        **{f"{name}-time-max": 2.0 for name in ("memtable-flush", "compaction")},
    }


def test_dashboard_and_alerts_group_by_labels_that_there_are(world: World) -> None:
    world.create("out")
    with restored(world, busy_topology()) as running:
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(running))
        samples = [sample for family in registry.collect() for sample in family.samples]
    labels = {sample.name: {*sample.labels, "instance"} for sample in samples}
    assert labels["kafka_streams_stream_metrics_state_info"] == {"client_id", "state", "instance"}
    for what, query in IN_PANELS + IN_ALERTS:
        grouped = {label.strip() for found in re.findall(r"by \(([^)]*)\)", query) for label in found.split(",")}
        for name in metrics_in(query) & labels.keys():
            assert grouped <= labels[name], (what, name)

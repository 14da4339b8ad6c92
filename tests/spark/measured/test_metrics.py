"""The metrics of an application on Spark: the names that it has on the native engine, and values that add up."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import kstreams as ks
from kstreams.metrics.catalogue import CLIENT, CONSUMER, NODE, SPARK_QUERY, STATE, TASK, TEMPLATES, THREAD, TOPIC
from kstreams.metrics.opentelemetry import observe
from kstreams.metrics.prometheus import PrometheusCollector
from tests.spark.running import Application, Row
from tests.spark.word_count import WORD_TYPES

pytestmark = pytest.mark.spark


def counts_by_window() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0))
    words.count("per-window").to_stream().map(lambda key, n: (key.key, n), key=str, value=int).to("counts")
    return builder


ROWS = [Row("lines", "a", "x", 5), Row("lines", "a", "x", 25), Row("lines", "a", "x", 6)]


@pytest.fixture(scope="module")
def ended(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run that has ended: three records read, of which one came too late, and two written."""
    window = {"metrics.sample.window.ms": 3_600_000}
    app = Application(spark, tmp_path_factory.mktemp("app"), counts_by_window(), WORD_TYPES, **window)
    app.create("lines", partitions=1).write(ROWS)
    run = ks.spark.start(counts_by_window(), spark, app.settings, once=True)
    assert run.await_termination(200)
    return run


def one(run: Any, group: str, name: str, **tags: str) -> Any:
    wanted = {key.replace("_", "-"): value for key, value in tags.items()}
    found = [
        value
        for metric, value in run.metrics().items()
        if metric[:2] == (group, name) and wanted.items() <= dict(metric.tags).items()
    ]
    assert len(found) == 1, found
    return found[0]


def test_what_is_measured_adds_up(ended: Any) -> None:
    assert one(ended, CLIENT, "application-id") == "app"
    assert one(ended, CLIENT, "state") == "NOT_RUNNING"
    assert one(ended, THREAD, "process-total", thread_id="app-spark") == 3
    assert one(ended, THREAD, "commit-total") == ended.progress.commits > 0
    assert 0 < one(ended, THREAD, "commit-latency-avg") < one(ended, THREAD, "process-latency-avg")
    assert one(ended, TASK, "dropped-records-total") == 1
    assert one(ended, NODE, "dropped-records-by-reason-total", processor_node_id="KSTREAM-AGGREGATE-0000000001") == 1
    assert one(ended, TOPIC, "records-produced-total", topic_name="counts") == 2
    assert one(ended, TASK, "stream-time", task_id="0_0") == 25
    assert one(ended, STATE, "estimate-num-keys", task_id="0_0", rocksdb_state_id="per-window") >= 0
    batch = {"client_id": "app", "query": "app"}
    assert one(ended, SPARK_QUERY, "processed-rows-per-second", **batch) > 0
    assert one(ended, SPARK_QUERY, "batch-duration-ms", phase="triggerExecution", **batch) > 0
    assert one(ended, STATE, "estimate-live-data-size", task_id="0_0", rocksdb_state_id="per-window") >= 0


def test_what_spark_measures_of_its_queries_is_among_the_metrics(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    lines.group_by(ks.value.str.upper(), key=str).count().to_stream().to("counts")
    relational = {"spark.kstreams.path": "relational"}
    app = Application(spark, tmp_path, builder, WORD_TYPES, **relational).create("lines").write(ROWS)
    run = ks.spark.start(builder, spark, app.settings, once=True)
    assert run.await_termination(200)
    (query,) = {metric.tag("query") for metric in run.metrics() if metric.group == SPARK_QUERY}
    assert query is not None
    assert query.startswith("app, counts: to() ")
    batch = {"client_id": "app", "query": query}
    assert one(run, SPARK_QUERY, "batch-id", **batch) == 0
    assert one(run, SPARK_QUERY, "processed-rows-per-second", **batch) > 0
    phases = {metric.tag("phase") for metric in run.metrics() if metric.name == "batch-duration-ms"}
    assert {"triggerExecution", "addBatch", "queryPlanning"} <= phases
    assert one(run, SPARK_QUERY, "state-rows-total", operator="0-stateStoreSave", **batch) == 1
    assert one(run, SPARK_QUERY, "state-memory-used-bytes", operator="0-stateStoreSave", **batch) > 0


def test_every_name_and_label_is_one_of_the_native_engine(ended: Any) -> None:
    for name in ended.metrics():
        assert {label for label, _ in name.tags} <= {*TEMPLATES[name[:2]].labels}


def test_prometheus_and_opentelemetry_read_them(ended: Any) -> None:
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(ended))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    samples = {sample.name: sample.value for family in families for sample in family.samples}
    assert samples["kafka_streams_stream_thread_metrics_process_total"] == 3
    reader = InMemoryMetricReader()
    observe(ended, MeterProvider([reader]).get_meter("kstreams"))
    data = reader.get_metrics_data()
    assert data is not None
    found = {metric.name for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert (
        samples.keys() - {"kafka_streams_stream_metrics_state_info"} - {n for n in samples if n.endswith("_info")}
        <= found
    )


def test_a_run_that_goes_on_knows_its_lag(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, counts_by_window(), WORD_TYPES).create("lines", partitions=1).write(ROWS)
    lags, begun = list[Any](), threading.Event()

    def look(progress: Any) -> None:
        assert begun.wait(100)
        lags.append(one(run, CONSUMER, "records-lag", topic="lines", partition="0"))
        if len(lags) == 3:
            run.stop(wait=False)

    one_by_one = {**app.settings, "spark.kstreams.max.records": 1}
    run = ks.spark.start(counts_by_window(), spark, one_by_one, on_progress=look)
    begun.set()
    assert run.await_termination(200)
    assert lags == [2, 1, 0]

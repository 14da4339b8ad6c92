"""`gathered`: the metrics of a run on Spark as they are now, under the names that they have on the native engine.

A step is to Spark what a run of records is to a stream thread: so it counts as one, of the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from time import monotonic
from typing import TypeAlias

from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.metrics.activity import Activity
from kstreams.runtime.metrics.catalogue import CLIENT, CONSUMER, NODE, STATE, TASK, THREAD, TOPIC, MetricName
from kstreams.runtime.spark.measured.step_sensors import StepSensors
from kstreams.runtime.spark.progress import SparkProgress

Value: TypeAlias = float | str
Tags: TypeAlias = tuple[tuple[str, str], ...]
Found: TypeAlias = Iterator[tuple[MetricName, Value | None]]

PACKAGE = "kstreams-dsl"


def gathered(
    application_id: str, state: str, progress: SparkProgress, sensors: StepSensors, lags: Mapping[TopicPartition, int]
) -> dict[MetricName, Value]:
    """Every metric that has a value by now.

    Parameters
    ----------
    application_id : str
    state : str
        Of the run.
    progress : SparkProgress
    sensors : StepSensors
    lags : mapping of TopicPartition to int
        The records that wait; empty where nobody knows.

    Examples
    --------
    >>> from kstreams.runtime.metrics.activity import SampleWindows
    >>> sensors = StepSensors(SampleWindows(30, 2))
    >>> found = gathered("shop", "RUNNING", SparkProgress(records_in=7), sensors, {})
    >>> found[MetricName("stream-thread-metrics", "process-total", (("thread-id", "shop-spark"),))]
    7
    """
    tags = (("thread-id", f"{application_id}-spark"),)
    of_client = (("client-id", application_id),)
    values = [*_of_client(application_id, state, of_client), *_of_steps(progress, sensors, tags)]
    values += [*_of_records(progress, tags), *_of_tasks(sensors, tags)]
    for source, lag in lags.items():
        of_source = (*of_client, ("topic", source.topic), ("partition", str(source.partition)))
        values.append((MetricName(CONSUMER, "records-lag", of_source), lag))
    return {name: value for name, value in values if value is not None}


def _of_client(application_id: str, state: str, tags: Tags) -> Found:
    yield MetricName(CLIENT, "version", tags), version(PACKAGE)
    yield MetricName(CLIENT, "application-id", tags), application_id
    yield MetricName(CLIENT, "state", tags), state


def _of_steps(progress: SparkProgress, sensors: StepSensors, tags: Tags) -> Found:
    now = monotonic()
    for name, activity in (("process", sensors.process), ("commit", sensors.commit)):
        yield from _of_activity(name, activity, tags, now)
    records = sensors.process.records
    yield MetricName(THREAD, "process-rate", tags), records.sum_rate(now)
    yield MetricName(THREAD, "process-total", tags), progress.records_in
    yield MetricName(THREAD, "process-records-avg", tags), records.average(now)
    yield MetricName(THREAD, "process-records-max", tags), records.highest(now)
    yield MetricName(THREAD, "commit-rate", tags), sensors.commit.seconds.rate(now)
    yield MetricName(THREAD, "commit-total", tags), progress.commits


def _of_activity(name: str, activity: Activity, tags: Tags, now: float) -> Found:
    average = activity.seconds.average(now)
    highest = activity.seconds.highest(now)
    yield MetricName(THREAD, f"{name}-latency-avg", tags), None if average is None else average * 1000
    yield MetricName(THREAD, f"{name}-latency-max", tags), None if highest is None else highest * 1000
    yield MetricName(THREAD, f"{name}-ratio", tags), activity.seconds.sum_rate(now)


def _of_records(progress: SparkProgress, tags: Tags) -> Found:
    dropped = progress.dropped.copy()
    yield MetricName(TASK, "dropped-records-total", tags), dropped.total()
    for (operator, reason), count in dropped.items():
        of_node = (*tags, ("processor-node-id", operator), ("reason", reason))
        yield MetricName(NODE, "dropped-records-by-reason-total", of_node), count
    for topic, count in progress.records_out.copy().items():
        yield MetricName(TOPIC, "records-produced-total", (*tags, ("topic-name", topic))), count


def _of_tasks(sensors: StepSensors, tags: Tags) -> Found:
    for task, time_ms in sensors.stream_times.copy().items():
        yield MetricName(TASK, "stream-time", (*tags, ("task-id", task))), time_ms
    for (task, store), size in sensors.sizes.copy().items():
        of_store = (*tags, ("task-id", task), ("rocksdb-state-id", store))
        yield MetricName(STATE, "estimate-num-keys", of_store), size.rows
        yield MetricName(STATE, "estimate-live-data-size", of_store), size.bytes

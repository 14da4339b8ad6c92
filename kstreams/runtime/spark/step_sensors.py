"""`StepSensors`: the driver's measurements of steps, and the metrics of a run that come from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from time import monotonic
from typing import TypeAlias

from kstreams.config import Config
from kstreams.kernel.batch import TopicPartition
from kstreams.metrics.catalogue import CLIENT, CONSUMER, NODE, STATE, TASK, THREAD, TOPIC, MetricName
from kstreams.metrics.samples import Activity, SampleWindows
from kstreams.runtime.spark.exchange.reports import StoreSize, TaskReport
from kstreams.runtime.spark.progress import SparkProgress

Value: TypeAlias = float | str
Tags: TypeAlias = tuple[tuple[str, str], ...]
MetricValues: TypeAlias = Iterator[tuple[MetricName, Value | None]]

PACKAGE = "kstreams-dsl"


def metric_values(
    application_id: str, state: str, progress: SparkProgress, sensors: StepSensors, lags: Mapping[TopicPartition, int]
) -> dict[MetricName, Value]:
    """Return the value of every metric that has one.

    Parameters
    ----------
    application_id : str
    state : str
        The state of the run.
    progress : SparkProgress
    sensors : StepSensors
    lags : mapping of TopicPartition to int
        The unprocessed records of each partition; empty if the log does not answer.

    Examples
    --------
    >>> from kstreams.metrics.samples import SampleWindows
    >>> sensors = StepSensors(SampleWindows(30, 2))
    >>> values = metric_values("shop", "RUNNING", SparkProgress(records_in=7), sensors, {})
    >>> values[MetricName("stream-thread-metrics", "process-total", (("thread-id", "shop-spark"),))]
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


def _of_client(application_id: str, state: str, tags: Tags) -> MetricValues:
    yield MetricName(CLIENT, "version", tags), version(PACKAGE)
    yield MetricName(CLIENT, "application-id", tags), application_id
    yield MetricName(CLIENT, "state", tags), state


def _of_steps(progress: SparkProgress, sensors: StepSensors, tags: Tags) -> MetricValues:
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


def _of_activity(name: str, activity: Activity, tags: Tags, now: float) -> MetricValues:
    average = activity.seconds.average(now)
    highest = activity.seconds.highest(now)
    yield MetricName(THREAD, f"{name}-latency-avg", tags), None if average is None else average * 1000
    yield MetricName(THREAD, f"{name}-latency-max", tags), None if highest is None else highest * 1000
    yield MetricName(THREAD, f"{name}-ratio", tags), activity.seconds.sum_rate(now)


def _of_records(progress: SparkProgress, tags: Tags) -> MetricValues:
    dropped = progress.dropped.copy()
    yield MetricName(TASK, "dropped-records-total", tags), dropped.total()
    for (operator, reason), count in dropped.items():
        of_node = (*tags, ("processor-node-id", operator), ("reason", reason))
        yield MetricName(NODE, "dropped-records-by-reason-total", of_node), count
    for topic, count in progress.records_out.copy().items():
        yield MetricName(TOPIC, "records-produced-total", (*tags, ("topic-name", topic))), count


def _of_tasks(sensors: StepSensors, tags: Tags) -> MetricValues:
    for task, time_ms in sensors.stream_times.copy().items():
        yield MetricName(TASK, "stream-time", (*tags, ("task-id", task))), time_ms
    for (task, store), size in sensors.sizes.copy().items():
        of_store = (*tags, ("task-id", task), ("rocksdb-state-id", store))
        yield MetricName(STATE, "estimate-num-keys", of_store), size.rows
        yield MetricName(STATE, "estimate-live-data-size", of_store), size.bytes


class StepSensors:
    """The measurements of the steps. The threads of the run record them; any thread may read them.

    Parameters
    ----------
    windows : SampleWindows

    Attributes
    ----------
    process, commit : Activity
        Durations and records of whole steps, and durations of their commits.
    sizes : mapping of (str, str) to StoreSize
        By task and store: the size after the task's last step.
    stream_times : mapping of str to int
        The stream time (ms) of each task.

    Examples
    --------
    >>> sensors = StepSensors(SampleWindows(30, 2))
    >>> size = StoreSize(rows=3, bytes=100, updated=1)
    >>> sensors.applied(0.0, 0.0, [TaskReport(records_in=5, states={"0_1": b""}, stores={"counts": size})])
    >>> sensors.process.records.total, sensors.of_stores()["counts"].rows
    (5.0, 3)
    """

    def __init__(self, windows: SampleWindows) -> None:
        self.process = Activity(windows)
        self.commit = Activity(windows)
        self.sizes: dict[tuple[str, str], StoreSize] = {}
        self.stream_times: dict[str, int] = {}

    @classmethod
    def of(cls, config: Config) -> StepSensors:
        """Create sensors with the sample windows of the configuration."""
        return cls(SampleWindows.of(config))

    def applied(self, started_at: float, commit_started_at: float, reports: Iterable[TaskReport]) -> None:
        """Record a step that is committed now; the times are seconds of the monotonic clock."""
        all_reports = list(reports)
        self.commit.record(commit_started_at)
        self.process.record(started_at, sum(report.records_in for report in all_reports))
        for report in all_reports:
            self.stream_times |= report.stream_times
            self.sizes |= {(task, store): size for task in report.states for store, size in report.stores.items()}

    def of_stores(self) -> dict[str, StoreSize]:
        """Return the size of each store in all tasks together."""
        sizes: dict[str, StoreSize] = {}
        for (_, store), size in self.sizes.copy().items():
            earlier_size = sizes.get(store)
            sizes[store] = size if earlier_size is None else earlier_size + size
        return sizes

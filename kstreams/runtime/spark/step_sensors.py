"""`StepSensors`: the driver's measurements of steps, and the metrics of a run that come from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic

from kstreams.config import Config
from kstreams.kernel.batch import TopicPartition
from kstreams.metrics import catalogue
from kstreams.metrics.samples import Activity, SampleWindows
from kstreams.metrics.template import MetricName, Tags
from kstreams.metrics.values import MetricValue, MetricValues, average_and_maximum, durations, identity
from kstreams.runtime.spark.batch_measures import BatchMeasures, batch_metrics
from kstreams.runtime.spark.exchange.reports import StoreSize, TaskReport
from kstreams.runtime.spark.progress import SparkProgress


def metric_values(
    application_id: str,
    state: str,
    progress: SparkProgress,
    sensors: StepSensors,
    lags: Mapping[TopicPartition, int],
    batches: Mapping[str, BatchMeasures],
) -> dict[MetricName, MetricValue]:
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
    batches : mapping of str to BatchMeasures
        By the name of each query: its last batch.

    Examples
    --------
    >>> from kstreams.metrics.samples import SampleWindows
    >>> sensors = StepSensors(SampleWindows(30, 2))
    >>> values = metric_values("shop", "RUNNING", SparkProgress(records_in=7), sensors, {}, {})
    >>> values[catalogue.THREAD_PROCESS.events.total.tagged((("thread-id", "shop-spark"),))]
    7
    """
    tags = (("thread-id", f"{application_id}-spark"),)
    client_tags = (("client-id", application_id),)
    values = [*identity(application_id, state, client_tags), *_steps(progress, sensors, tags)]
    values += [*_records(progress, tags), *_tasks(sensors, tags)]
    values += batch_metrics(batches, client_tags)
    for source, lag in lags.items():
        source_tags = (*client_tags, ("topic", source.topic), ("partition", str(source.partition)))
        values.append((catalogue.RECORDS_LAG.tagged(source_tags), lag))
    return {name: value for name, value in values if value is not None}


def _steps(progress: SparkProgress, sensors: StepSensors, tags: Tags) -> MetricValues:
    now = monotonic()
    process = catalogue.THREAD_PROCESS
    commit = catalogue.THREAD_COMMIT
    yield from durations(process, sensors.process, tags, now)
    yield from durations(commit, sensors.commit, tags, now)
    yield process.events.rate.tagged(tags), sensors.process.records.sum_rate(now)
    yield process.events.total.tagged(tags), progress.records_in
    yield from average_and_maximum(catalogue.PROCESS_RECORDS, sensors.process.records, tags, now)
    yield commit.events.rate.tagged(tags), sensors.commit.seconds.rate(now)
    yield commit.events.total.tagged(tags), progress.commits


def _records(progress: SparkProgress, tags: Tags) -> MetricValues:
    dropped = progress.dropped.copy()
    yield catalogue.DROPPED_RECORDS.total.tagged(tags), dropped.total()
    for (operator, reason), count in dropped.items():
        reason_tags = (*tags, ("processor-node-id", operator), ("reason", reason))
        yield catalogue.DROPPED_RECORDS_BY_REASON.tagged(reason_tags), count
    for topic, count in progress.records_out.copy().items():
        yield catalogue.RECORDS_PRODUCED.tagged((*tags, ("topic-name", topic))), count


def _tasks(sensors: StepSensors, tags: Tags) -> MetricValues:
    for task, time_ms in sensors.stream_times.copy().items():
        yield catalogue.STREAM_TIME.tagged((*tags, ("task-id", task))), time_ms
    for (task, store), size in sensors.sizes.copy().items():
        store_tags = (*tags, ("task-id", task), ("rocksdb-state-id", store))
        yield catalogue.ESTIMATE_NUM_KEYS.tagged(store_tags), size.rows
        yield catalogue.ESTIMATE_LIVE_DATA_SIZE.tagged(store_tags), size.bytes


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

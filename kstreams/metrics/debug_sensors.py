"""The sensors of a task at `metrics.recording.level=DEBUG`."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

import numpy as np

from kstreams.config import Config
from kstreams.metrics import catalogue
from kstreams.metrics.samples import Activity, Growth, Samples, SampleWindows
from kstreams.metrics.template import AvgMax, MetricTemplate, RateTotal, RecordingLevel, Tags
from kstreams.metrics.values import MetricValues, average_and_maximum
from kstreams.processor.operators.suppress import SuppressOperator
from kstreams.processor.task.partition_group import Interleaved
from kstreams.processor.task.task import Task
from kstreams.processor.topology.nodes import ProcessorNode, SubTopology
from kstreams.state.api import TaskState, TimeOrderedBuffer
from kstreams.state.column_family import Statistic
from kstreams.state.rows.store_measures import OperationTime, ReadCounts, StoreOperation


def records_debug(config: Config) -> bool:
    """Return whether the configuration asks for the metrics that cost time for every record or look-up.

    Examples
    --------
    >>> records_debug(Config.of()), records_debug(Config.of({"metrics.recording.level": "DEBUG"}))
    (False, True)
    """
    return bool(config["metrics.recording.level"] == RecordingLevel.DEBUG.value)


class SuppressSensors:
    """The sensors of a suppress operator.

    Parameters
    ----------
    windows : SampleWindows
    store : str
        The name of the buffer.
    buffer : TimeOrderedBuffer

    Attributes
    ----------
    extents : dict of AvgMax to Samples
        The records and the bytes in the buffer at each update, by metric.
    """

    def __init__(self, windows: SampleWindows, store: str, buffer: TimeOrderedBuffer) -> None:
        self.store = store
        self._buffer = buffer
        self._records = windows.samples()
        self._bytes = windows.samples()
        self.extents: dict[AvgMax, Samples] = {
            catalogue.SUPPRESSION_BUFFER_COUNT: self._records,
            catalogue.SUPPRESSION_BUFFER_SIZE: self._bytes,
        }

    def update(self) -> None:
        """Record what the buffer holds now."""
        now = monotonic()
        self._records.record(self._buffer.num_records(), now)
        self._bytes.record(self._buffer.num_bytes(), now)


def suppress_sensors(windows: SampleWindows, sub_topology: SubTopology, state: TaskState) -> list[SuppressSensors]:
    """Return the sensors of the suppress operators of a sub-topology."""
    operators = (node.operator for node in sub_topology.nodes if isinstance(node, ProcessorNode))
    return [
        SuppressSensors(windows, operator.store, state.stores[operator.store])
        for operator in operators
        if isinstance(operator, SuppressOperator)
    ]


class OperationSensors:
    """The durations of the operations of stores.

    Parameters
    ----------
    windows : SampleWindows
    times : mapping of str to mapping of StoreOperation to OperationTime
        The running times by store and operation.

    Attributes
    ----------
    by_operation : dict of (str, StoreOperation) to Samples
        The durations in seconds, by store and operation.

    Examples
    --------
    >>> time = OperationTime()
    >>> operations = OperationSensors(SampleWindows(30, 2), {"counts": {StoreOperation.GET: time}})
    >>> time.took(0.25), time.took(0.75)
    (None, None)
    >>> operations.update()
    >>> durations = operations.by_operation["counts", StoreOperation.GET]
    >>> durations.count, durations.average(monotonic()), durations.highest(monotonic())
    (2, 0.5, 0.75)
    """

    __slots__ = ("_before", "_times", "_windows", "by_operation")

    def __init__(self, windows: SampleWindows, times: Mapping[str, Mapping[StoreOperation, OperationTime]]) -> None:
        self._windows = windows
        self._times = {(store, name): time for store, of_store in times.items() for name, time in of_store.items()}
        self._before = dict.fromkeys(self._times, (0, 0.0))
        self.by_operation: dict[tuple[str, StoreOperation], Samples] = {}

    def update(self) -> None:
        """Record the operations since the last update."""
        now = monotonic()
        for operation, time in self._times.items():
            count, seconds = self._before[operation]
            if time.count > count:
                samples = self.by_operation.setdefault(operation, self._windows.samples())
                samples.record_many(time.count - count, time.seconds - seconds, 0, time.longest_s, now)
                self._before[operation] = (time.count, time.seconds)
                time.longest_s = 0.0


class Emissions:
    """The records that suppress operators and windowed aggregations with emit on close have emitted.

    Parameters
    ----------
    windows : SampleWindows
    sub_topology : SubTopology

    Attributes
    ----------
    by_operator : dict of (str, RateTotal) to Growth
        By the name of the operator and the metric.
    """

    def __init__(self, windows: SampleWindows, sub_topology: SubTopology) -> None:
        metrics = ((node.name, _emit_metric(node)) for node in sub_topology.nodes if isinstance(node, ProcessorNode))
        self.by_operator = {(node, metric): Growth(windows) for node, metric in metrics if metric is not None}

    def update(self, forwarded: Mapping[tuple[str, str], int]) -> None:
        """Record the numbers of forwarded records so far, by operator and child."""
        if not self.by_operator:
            return
        emitted: dict[str, int] = {}
        for (node, _), count in forwarded.items():
            emitted[node] = max(count, emitted.get(node, 0))
        for (node, _), growth in self.by_operator.items():
            growth.update(emitted.get(node, 0))


def _emit_metric(node: ProcessorNode) -> RateTotal | None:
    """Return the metric that counts the results of an operator, or None if the operator delays no results."""
    if isinstance(node.operator, SuppressOperator):
        return catalogue.SUPPRESSION_EMIT
    return catalogue.WINDOW_FINAL_EMIT if getattr(node.operator, "emits_on_close", False) else None


_TICKERS: dict[RateTotal, str] = {
    catalogue.BYTES_WRITTEN: "bytes.written",
    catalogue.BYTES_READ: "bytes.read",
    catalogue.MEMTABLE_BYTES_FLUSHED: "flush.write.bytes",
    catalogue.COMPACTION_BYTES_WRITTEN: "compact.write.bytes",
    catalogue.COMPACTION_BYTES_READ: "compact.read.bytes",
}
_HITS_AND_MISSES: dict[MetricTemplate, tuple[str, str]] = {
    catalogue.MEMTABLE_HIT_RATIO: ("memtable.hit", "memtable.miss"),
    catalogue.DATA_BLOCK_HIT_RATIO: ("block.cache.data.hit", "block.cache.data.miss"),
    catalogue.INDEX_BLOCK_HIT_RATIO: ("block.cache.index.hit", "block.cache.index.miss"),
    catalogue.FILTER_BLOCK_HIT_RATIO: ("block.cache.filter.hit", "block.cache.filter.miss"),
}
_HISTOGRAMS: dict[AvgMax, str] = {
    catalogue.MEMTABLE_FLUSH_TIME: "db.flush.micros",
    catalogue.COMPACTION_TIME: "compaction.times.micros",
}
_STALL_MICROS = "stall.micros"
_FILE_ERRORS = "no.file.errors"
_INTERVAL_S = 1.0  # reading all statistics takes half a millisecond
_ZERO = Statistic(0)


class DatabaseSensors:
    """RocksDB's statistics of the database of a task. The thread that owns the database calls it.

    Parameters
    ----------
    windows : SampleWindows

    Examples
    --------
    >>> sensors = DatabaseSensors(SampleWindows(30, 2))
    >>> sensors.update({"bytes.read": Statistic(70), "memtable.hit": Statistic(3), "memtable.miss": Statistic(1)})
    >>> values = dict(sensors.values((), monotonic()))
    >>> values[catalogue.BYTES_READ.total.tagged(())], values[catalogue.MEMTABLE_HIT_RATIO.tagged(())]
    (70, 0.75)
    """

    def __init__(self, windows: SampleWindows) -> None:
        self._growths = {metrics: windows.samples() for metrics in _TICKERS}
        self._ratios = {metric: windows.samples() for metric in _HITS_AND_MISSES}
        self._durations_ms = {metrics: windows.samples() for metrics in _HISTOGRAMS}
        self._latest: Mapping[str, Statistic] = {}
        self._due_s = 0.0

    def is_due(self) -> bool:
        """Return whether the last update is a second old."""
        return monotonic() >= self._due_s

    def update(self, statistics: Mapping[str, Statistic]) -> None:
        """Record the present statistics."""
        now = monotonic()
        before = self._latest
        self._latest = statistics
        self._due_s = now + _INTERVAL_S

        def growth(name: str) -> int:
            return statistics.get(name, _ZERO).times - before.get(name, _ZERO).times

        for metrics, ticker in _TICKERS.items():
            self._growths[metrics].record(growth(ticker), now)
        for metric, (hit, miss) in _HITS_AND_MISSES.items():
            hits = growth(hit)
            _record_ratio(self._ratios[metric], hits, hits + growth(miss), now)
        for times, histogram in _HISTOGRAMS.items():
            count = growth(histogram)
            total = statistics.get(histogram, _ZERO).total - before.get(histogram, _ZERO).total
            if count:
                highest = statistics[histogram].highest
                self._durations_ms[times].record_many(count, total / 1000, 0, highest / 1000, now)

    def values(self, tags: Tags, now: float) -> MetricValues:
        """Return the values of the metrics."""
        for metrics, ticker in _TICKERS.items():
            yield metrics.rate.tagged(tags), self._growths[metrics].sum_rate(now)
            yield metrics.total.tagged(tags), self._count(ticker)
        for metric, ratio in self._ratios.items():
            yield metric.tagged(tags), ratio.average(now)
        for times, samples in self._durations_ms.items():
            yield from average_and_maximum(times, samples, tags, now)
        yield catalogue.WRITE_STALL_DURATION.tagged(tags), self._count(_STALL_MICROS) / 1000
        yield catalogue.NUMBER_FILE_ERRORS.tagged(tags), self._count(_FILE_ERRORS)

    def _count(self, name: str) -> int:
        return self._latest.get(name, _ZERO).times


def _record_ratio(ratios: Samples, hits: int, lookups: int, now: float) -> None:
    """Record the hit ratio of look-ups, weighted by their number."""
    if lookups:
        ratio = hits / lookups
        ratios.record_many(lookups, hits, ratio, ratio, now)


class CacheHits:
    """The hit ratios of the stores of a task.

    Parameters
    ----------
    windows : SampleWindows
    reads : mapping of str to ReadCounts
        The running counts by store.

    Attributes
    ----------
    by_store : dict of str to Samples
        The hit ratios of runs.

    Examples
    --------
    >>> reads = ReadCounts()
    >>> hits = CacheHits(SampleWindows(30, 2), {"counts": reads})
    >>> reads.look_ups, reads.misses = 8, 2
    >>> hits.update()
    >>> hits.by_store["counts"].average(monotonic())
    0.75
    """

    __slots__ = ("_before", "_reads", "_windows", "by_store")

    def __init__(self, windows: SampleWindows, reads: Mapping[str, ReadCounts]) -> None:
        self._windows = windows
        self._reads = reads
        self._before = {store: of_store.copy() for store, of_store in reads.items()}
        self.by_store: dict[str, Samples] = {}

    def update(self) -> None:
        """Record the look-ups since the last update."""
        for store, reads in self._reads.items():
            lookups, hits = reads.hits_since(self._before[store])
            if lookups:
                self._before[store] = reads.copy()
                _record_ratio(self.by_store.setdefault(store, self._windows.samples()), hits, lookups, monotonic())


class DebugSensors:
    """The sensors of a task that cost time for every record, look-up or run.

    Parameters
    ----------
    windows : SampleWindows
    sub_topology : SubTopology
    state : TaskState
        Opened with measured stores (see `open_task_state`).

    Attributes
    ----------
    process, punctuate : Activity
    commits : Samples
    lateness : Samples
        How many milliseconds records are behind stream time.
    enforced : Samples
        Runs although an input was empty.
    """

    def __init__(self, windows: SampleWindows, sub_topology: SubTopology, state: TaskState) -> None:
        self.process = Activity(windows)
        self.punctuate = Activity(windows)
        self.commits = windows.samples()
        self.lateness = windows.samples()
        self.enforced = windows.samples()
        self.hits = CacheHits(windows, state.reads())
        self.operations = OperationSensors(windows, state.operation_times())
        self.suppress = suppress_sensors(windows, sub_topology, state)
        self.emissions = Emissions(windows, sub_topology)
        self.database = DatabaseSensors(windows)

    def record_lateness(self, runs: Interleaved, stream_time: int, *, enforced: bool) -> None:
        """Record the lateness of records that are about to be processed, and whether an input is empty."""
        now = monotonic()
        times = runs.timestamps()
        late = np.maximum(np.maximum.accumulate(times), stream_time) - times
        self.lateness.record_many(len(late), float(late.sum()), int(late.min()), int(late.max()), now)
        if enforced:
            self.enforced.record(1, now)

    def record_run(self, task: Task, started_at: float, records: int) -> None:
        """Record a run of records that ends now and started at a second of the monotonic clock."""
        self.process.record(started_at, records)
        self.hits.update()
        self._update(task)

    def record_commit(self, task: Task, state: TaskState) -> None:
        """Record a commit, after the stores have written it to disk. The thread that owns the stores calls it."""
        self.commits.record(1, monotonic())
        self._update(task)
        if self.database.is_due():
            self.database.update(state.database_statistics())

    def _update(self, task: Task) -> None:
        self.operations.update()
        self.emissions.update(task.forwarded)
        for sensors in self.suppress:
            sensors.update()

"""The sensors of a task at `metrics.recording.level=DEBUG`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import monotonic

import numpy as np

from kstreams.config import Config
from kstreams.metrics.samples import Activity, Growth, Samples, SampleWindows
from kstreams.processor.operators.suppress import SuppressOperator
from kstreams.processor.task.interleaved import Interleaved
from kstreams.processor.task.task import Task
from kstreams.processor.topology.nodes import ProcessorNode, SubTopology
from kstreams.state.api import TaskState, TimeOrderedBuffer
from kstreams.state.column_family import Statistic
from kstreams.state.rows.operation_time import OperationTime
from kstreams.state.rows.read_counts import ReadCounts


def records_debug(config: Config) -> bool:
    """Return whether the configuration asks for the metrics that cost time for every record or look-up.

    Examples
    --------
    >>> records_debug(Config.of()), records_debug(Config.of({"metrics.recording.level": "DEBUG"}))
    (False, True)
    """
    return bool(config["metrics.recording.level"] == "DEBUG")


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
    extents : dict of str to Samples
        The records (`count`) and bytes (`size`) in the buffer at each update.
    """

    def __init__(self, windows: SampleWindows, store: str, buffer: TimeOrderedBuffer) -> None:
        self.store = store
        self._buffer = buffer
        self.extents = {"count": windows.samples(), "size": windows.samples()}

    def update(self) -> None:
        """Record what the buffer holds now."""
        now = monotonic()
        self.extents["count"].record(self._buffer.num_records(), now)
        self.extents["size"].record(self._buffer.num_bytes(), now)


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
    times : mapping of str to mapping of str to OperationTime
        The running times by store and operation.

    Attributes
    ----------
    by_operation : dict of (str, str) to Samples
        The durations in seconds, by store and operation.

    Examples
    --------
    >>> time = OperationTime()
    >>> operations = OperationSensors(SampleWindows(30, 2), {"counts": {"get": time}})
    >>> time.took(0.25), time.took(0.75)
    (None, None)
    >>> operations.update()
    >>> durations = operations.by_operation["counts", "get"]
    >>> durations.count, durations.average(monotonic()), durations.highest(monotonic())
    (2, 0.5, 0.75)
    """

    __slots__ = ("_before", "_times", "_windows", "by_operation")

    def __init__(self, windows: SampleWindows, times: Mapping[str, Mapping[str, OperationTime]]) -> None:
        self._windows = windows
        self._times = {(store, name): time for store, of_store in times.items() for name, time in of_store.items()}
        self._before = dict.fromkeys(self._times, (0, 0.0))
        self.by_operation: dict[tuple[str, str], Samples] = {}

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
    by_operator : dict of (str, str) to Growth
        By the name of the operator and the name of the metric.
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


def _emit_metric(node: ProcessorNode) -> str | None:
    """Return the metric that counts the results of an operator, or None if the operator delays no results."""
    if isinstance(node.operator, SuppressOperator):
        return "suppression-emit"
    return "window-aggregate-final-emit" if getattr(node.operator, "emits_on_close", False) else None


RATES = {
    "bytes-written": "bytes.written",
    "bytes-read": "bytes.read",
    "memtable-bytes-flushed": "flush.write.bytes",
    "bytes-written-compaction": "compact.write.bytes",
    "bytes-read-compaction": "compact.read.bytes",
}
RATIOS = {
    "memtable-hit-ratio": ("memtable.hit", "memtable.miss"),
    "block-cache-data-hit-ratio": ("block.cache.data.hit", "block.cache.data.miss"),
    "block-cache-index-hit-ratio": ("block.cache.index.hit", "block.cache.index.miss"),
    "block-cache-filter-hit-ratio": ("block.cache.filter.hit", "block.cache.filter.miss"),
}
TIMES = {"memtable-flush-time": "db.flush.micros", "compaction-time": "compaction.times.micros"}
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
    >>> values = dict(sensors.values(monotonic()))
    >>> values["bytes-read-total"], values["memtable-hit-ratio"]
    (70, 0.75)
    """

    def __init__(self, windows: SampleWindows) -> None:
        self._rates = {name: windows.samples() for name in RATES}
        self._ratios = {name: windows.samples() for name in RATIOS}
        self._times = {name: windows.samples() for name in TIMES}
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

        for name, ticker in RATES.items():
            self._rates[name].record(growth(ticker), now)
        for name, (hit, miss) in RATIOS.items():
            hits = growth(hit)
            _record_ratio(self._ratios[name], hits, hits + growth(miss), now)
        for name, histogram in TIMES.items():
            count = growth(histogram)
            total = statistics.get(histogram, _ZERO).total - before.get(histogram, _ZERO).total
            if count:
                self._times[name].record_many(count, total / 1000, 0, statistics[histogram].highest / 1000, now)

    def values(self, now: float) -> Iterator[tuple[str, float | None]]:
        """Return the values of metrics, by name."""
        for name, ticker in RATES.items():
            yield f"{name}-rate", self._rates[name].sum_rate(now)
            yield f"{name}-total", self._latest.get(ticker, _ZERO).times
        for name, ratio in self._ratios.items():
            yield name, ratio.average(now)
        for name, times in self._times.items():
            yield f"{name}-avg", times.average(now)
            yield f"{name}-max", times.highest(now)
        yield "write-stall-duration-total", self._latest.get("stall.micros", _ZERO).times / 1000
        yield "number-file-errors-total", self._latest.get("no.file.errors", _ZERO).times


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

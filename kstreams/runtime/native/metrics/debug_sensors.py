"""`DebugSensors`: what a task measures of itself with `metrics.recording.level=DEBUG`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import monotonic

import numpy as np

from kstreams.config import Config
from kstreams.processor.operators.suppress import SuppressOperator
from kstreams.processor.task.interleaved import Interleaved
from kstreams.processor.task.task import Task
from kstreams.processor.topology.nodes import ProcessorNode, SubTopology
from kstreams.runtime.metrics.activity import Activity, SampleWindows
from kstreams.runtime.metrics.growth import Growth
from kstreams.runtime.metrics.samples import Samples
from kstreams.state.api import TaskState, TimeOrderedBuffer
from kstreams.state.column_family import Statistic
from kstreams.state.rows.operation_time import OperationTime
from kstreams.state.rows.read_counts import ReadCounts


def records_debug(config: Config) -> bool:
    """Whether also that is measured which takes time with every record or look-up.

    Examples
    --------
    >>> records_debug(Config.of()), records_debug(Config.of({"metrics.recording.level": "DEBUG"}))
    (False, True)
    """
    return bool(config["metrics.recording.level"] == "DEBUG")


class SuppressSensors:
    """The measurements of one suppress operator.

    Parameters
    ----------
    windows : SampleWindows
    store : str
        Its buffer's name.
    buffer : TimeOrderedBuffer

    Attributes
    ----------
    records, bytes : Samples
        What was in the buffer at each look.
    """

    def __init__(self, windows: SampleWindows, store: str, buffer: TimeOrderedBuffer) -> None:
        self.store = store
        self._buffer = buffer
        self.records = windows.samples()
        self.bytes = windows.samples()

    def look(self) -> None:
        """See what is there now."""
        now = monotonic()
        self.records.record(self._buffer.num_records(), now)
        self.bytes.record(self._buffer.num_bytes(), now)

    @property
    def extents(self) -> dict[str, Samples]:
        """What is in the buffer, by what it is called in metrics."""
        return {"count": self.records, "size": self.bytes}


def suppress_sensors(windows: SampleWindows, sub_topology: SubTopology, state: TaskState) -> list[SuppressSensors]:
    """One for each suppress operator."""
    operators = (node.operator for node in sub_topology.nodes if isinstance(node, ProcessorNode))
    return [
        SuppressSensors(windows, operator.store, state.stores[operator.store])
        for operator in operators
        if isinstance(operator, SuppressOperator)
    ]


class OperationSensors:
    """The times of the stores' operations, look by look.

    Parameters
    ----------
    windows : SampleWindows
    times : mapping of str to mapping of str to OperationTime
        By store and operation, as they go on.

    Examples
    --------
    >>> time = OperationTime()
    >>> operations = OperationSensors(SampleWindows(30, 2), {"counts": {"get": time}})
    >>> time.took(0.25), time.took(0.75)
    (None, None)
    >>> operations.look()
    >>> found = operations.by_operation["counts", "get"]
    >>> found.count, found.average(monotonic()), found.highest(monotonic())
    (2, 0.5, 0.75)
    """

    __slots__ = ("_before", "_times", "_windows", "by_operation")

    def __init__(self, windows: SampleWindows, times: Mapping[str, Mapping[str, OperationTime]]) -> None:
        self._windows = windows
        self._times = {(store, name): time for store, of_store in times.items() for name, time in of_store.items()}
        self._before = dict.fromkeys(self._times, (0, 0.0))
        self.by_operation: dict[tuple[str, str], Samples] = {}

    def look(self) -> None:
        """Take what came since the last time."""
        now = monotonic()
        for operation, time in self._times.items():
            count, seconds = self._before[operation]
            if time.count > count:
                samples = self.by_operation.setdefault(operation, self._windows.samples())
                samples.record_many(time.count - count, time.seconds - seconds, 0, time.longest_s, now)
                self._before[operation] = (time.count, time.seconds)
                time.longest_s = 0.0


class Emissions:
    """What each of these operators has passed on.

    Parameters
    ----------
    windows : SampleWindows
    sub_topology : SubTopology

    Attributes
    ----------
    by_operator : dict of (str, str) to Growth
        By the operator's name and what the metric is called.
    """

    def __init__(self, windows: SampleWindows, sub_topology: SubTopology) -> None:
        named = ((node.name, _metric(node)) for node in sub_topology.nodes if isinstance(node, ProcessorNode))
        self.by_operator = {(node, metric): Growth(windows) for node, metric in named if metric is not None}

    def look(self, forwarded: Mapping[tuple[str, str], int]) -> None:
        """See how many records were passed from each operator to each other one by now."""
        if not self.by_operator:
            return
        passed: dict[str, int] = {}
        for (node, _), count in forwarded.items():
            passed[node] = max(count, passed.get(node, 0))
        for (node, _), growth in self.by_operator.items():
            growth.reached(passed.get(node, 0))


def _metric(node: ProcessorNode) -> str | None:
    """What counts the results of an operator; None where it holds none back."""
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
_LOOK_S = 1.0  # reading all statistics takes half a millisecond
_NONE = Statistic(0)


class DatabaseSensors:
    """What a database says of itself, look by look; called by the thread that owns it.

    Parameters
    ----------
    windows : SampleWindows

    Examples
    --------
    >>> sensors = DatabaseSensors(SampleWindows(30, 2))
    >>> sensors.look({"bytes.read": Statistic(70), "memtable.hit": Statistic(3), "memtable.miss": Statistic(1)})
    >>> found = dict(sensors.values(monotonic()))
    >>> found["bytes-read-total"], found["memtable-hit-ratio"]
    (70, 0.75)
    """

    def __init__(self, windows: SampleWindows) -> None:
        self._rates = {name: windows.samples() for name in RATES}
        self._ratios = {name: windows.samples() for name in RATIOS}
        self._times = {name: windows.samples() for name in TIMES}
        self._latest: Mapping[str, Statistic] = {}
        self._due_s = 0.0

    def is_due(self) -> bool:
        """Whether the last look is long ago."""
        return monotonic() >= self._due_s

    def look(self, statistics: Mapping[str, Statistic]) -> None:
        """Take what the database says now."""
        now, before, self._latest, self._due_s = monotonic(), self._latest, statistics, monotonic() + _LOOK_S

        def grown(name: str) -> int:
            return statistics.get(name, _NONE).times - before.get(name, _NONE).times

        for name, ticker in RATES.items():
            self._rates[name].record(grown(ticker), now)
        for name, (hit, missed) in RATIOS.items():
            hits = grown(hit)
            lookups = grown(hit) + grown(missed)
            if lookups:
                self._ratios[name].record_many(lookups, hits, hits / lookups, hits / lookups, now)
        for name, timed in TIMES.items():
            count = grown(timed)
            total = statistics.get(timed, _NONE).total - before.get(timed, _NONE).total
            if count:
                self._times[name].record_many(count, total / 1000, 0, statistics[timed].highest / 1000, now)

    def values(self, now: float) -> Iterator[tuple[str, float | None]]:
        """Metrics by name."""
        for name, ticker in RATES.items():
            yield f"{name}-rate", self._rates[name].sum_rate(now)
            yield f"{name}-total", self._latest.get(ticker, _NONE).times
        for name, ratio in self._ratios.items():
            yield name, ratio.average(now)
        for name, times in self._times.items():
            yield f"{name}-avg", times.average(now)
            yield f"{name}-max", times.highest(now)
        yield "write-stall-duration-total", self._latest.get("stall.micros", _NONE).times / 1000
        yield "number-file-errors-total", self._latest.get("no.file.errors", _NONE).times


class CacheHits:
    """The hit ratios of the stores of one task, run by run.

    Parameters
    ----------
    windows : SampleWindows
    reads : mapping of str to StoreReads
        By store, as they go on.

    Examples
    --------
    >>> reads = ReadCounts()
    >>> hits = CacheHits(SampleWindows(30, 2), {"counts": reads})
    >>> reads.look_ups, reads.misses = 8, 2
    >>> hits.after_run()
    >>> hits.by_store["counts"].average(monotonic())
    0.75
    """

    __slots__ = ("_before", "_reads", "_windows", "by_store")

    def __init__(self, windows: SampleWindows, reads: Mapping[str, ReadCounts]) -> None:
        self._windows = windows
        self._reads = reads
        self._before = {store: of_store.copy() for store, of_store in reads.items()}
        self.by_store: dict[str, Samples] = {}

    def after_run(self) -> None:
        """Records were processed."""
        for store, reads in self._reads.items():
            lookups, hits = reads.hits_since(self._before[store])
            if lookups:
                self._before[store] = reads.copy()
                samples = self.by_store.setdefault(store, self._windows.samples())
                samples.record_many(lookups, hits, hits / lookups, hits / lookups, monotonic())


class DebugSensors:
    """The measurements of one task that take time with every record, look-up or run.

    Parameters
    ----------
    windows : SampleWindows
    sub_topology : SubTopology
    state : TaskState
        Measured (see `open_task_state`).

    Attributes
    ----------
    process, punctuate : Activity
    commits, lateness : Samples
        `lateness`: by how many milliseconds records are behind stream time.
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

    def before_run(self, runs: Interleaved, stream_time: int, *, enforced: bool) -> None:
        """Records are about to be processed; `enforced`: although an input is empty."""
        now = monotonic()
        times = runs.timestamps()
        late = np.maximum(np.maximum.accumulate(times), stream_time) - times
        self.lateness.record_many(len(late), float(late.sum()), int(late.min()), int(late.max()), now)
        if enforced:
            self.enforced.record(1, now)

    def after_run(self, task: Task, since: float, records: int) -> None:
        """They were processed, from this second of the monotonic clock on."""
        self.process.took(since, records)
        self.hits.after_run()
        self._look(task)

    def committed(self, task: Task, state: TaskState) -> None:
        """What the stores hold is on disk; called by the thread that owns them."""
        self.commits.record(1, monotonic())
        self._look(task)
        if self.database.is_due():
            self.database.look(state.database_statistics())

    def _look(self, task: Task) -> None:
        self.operations.look()
        self.emissions.look(task.forwarded)
        for sensors in self.suppress:
            sensors.look()

"""The sensors of stream threads, tasks and state updaters."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import NamedTuple

import pyarrow as pa

from kstreams.config import Config
from kstreams.log.api import Throttling
from kstreams.metrics.catalogue import ROCKSDB_PROPERTIES
from kstreams.metrics.debug_sensors import DebugSensors, records_debug
from kstreams.metrics.samples import Activity, Growth, Samples, SampleWindows
from kstreams.processor.task.task import Task
from kstreams.processor.topology.nodes import SubTopology
from kstreams.state.api import TaskState


class ThrottleSensor:
    """The delays of one client by the quota of its client id.

    Parameters
    ----------
    windows : SampleWindows

    Attributes
    ----------
    delays : Samples
        Milliseconds.

    Examples
    --------
    >>> sensor = ThrottleSensor(SampleWindows(30, 2))
    >>> sensor.update(Throttling(total_ms=250)), sensor.update(Throttling(total_ms=250))
    (None, None)
    >>> sensor.delays.total
    250.0
    """

    def __init__(self, windows: SampleWindows) -> None:
        self.delays = windows.samples()
        self._total_ms = 0

    def update(self, throttling: Throttling) -> None:
        """Record the delay since the last call, if there was any."""
        if throttling.total_ms != self._total_ms:
            self.delays.record(throttling.total_ms - self._total_ms, monotonic())
            self._total_ms = throttling.total_ms


class ThreadSensors:
    """The sensors of a stream thread.

    Parameters
    ----------
    windows : SampleWindows
    started_ms : int
        When the thread was created.

    Examples
    --------
    >>> sensors = ThreadSensors(SampleWindows(30, 2), started_ms=0)
    >>> for operator in ("COUNT", "COUNT", None, "FILTER"):
    ...     sensors.record_operator(operator)
    >>> sensors.operator_ratios(monotonic())
    {'COUNT': 0.5, 'FILTER': 0.25}
    """

    def __init__(self, windows: SampleWindows, started_ms: int) -> None:
        self._windows = windows
        self.started_ms = started_ms
        self.poll = Activity(windows)
        self.process = Activity(windows)
        self.punctuate = Activity(windows)
        self.commit = Activity(windows)
        self.produce_throttling = ThrottleSensor(windows)
        self.fetch_throttling = ThrottleSensor(windows)
        self.tasks_created = windows.samples()
        self.tasks_closed = windows.samples()
        self._stack_samples = windows.samples()
        self._operators = dict[str, Samples]()

    def record_operator(self, operator: str | None) -> None:
        """Record the operator in which a sample of the thread's stack found the thread, if any."""
        now = monotonic()
        self._stack_samples.record(1, now)
        if operator is not None:
            self._operators.setdefault(operator, self._windows.samples()).record(1, now)

    def operator_ratios(self, now: float) -> dict[str, float]:
        """Return the share of the thread's time that each operator takes, estimated from the recent stack samples."""
        count = self._stack_samples.recent_count(now)
        return {name: samples.recent_count(now) / count for name, samples in list(self._operators.items()) if count}


_AGE_SAMPLES = 32  # the ages of larger batches are estimated from so many records, which costs next to nothing


class RecordAges:
    """The ages of the records of each topic that a task reads or writes, and the time of the last record.

    The ages of a batch of more than 32 records are those of evenly spaced records.

    Examples
    --------
    >>> ages = RecordAges(SampleWindows(30, 2))
    >>> ages.record("orders", pa.array([1_000, 3_000]), now_ms=5_000)
    >>> orders = ages.by_topic["orders"]
    >>> orders.lowest(monotonic()), orders.average(monotonic()), orders.highest(monotonic())
    (2000, 3000.0, 4000)
    """

    __slots__ = ("_windows", "by_topic", "last_ms")

    def __init__(self, windows: SampleWindows) -> None:
        self._windows = windows
        self.by_topic: dict[str, Samples] = {}
        self.last_ms: dict[str, int] = {}

    def record(self, topic: str, timestamps: pa.Array, now_ms: int) -> None:
        """Record the ages of a batch that is processed or written now."""
        times = timestamps.to_numpy()
        count = len(timestamps)
        if not count:
            return
        if topic not in self.by_topic:
            self.by_topic[topic] = self._windows.samples()
        self.last_ms[topic] = int(times[-1])
        step = count // _AGE_SAMPLES + 1
        sample = times[step // 2 :: step].tolist()  # builtins are faster than numpy for so few
        total = count * (now_ms - sum(sample) / len(sample))
        self.by_topic[topic].record_many(count, total, now_ms - max(sample), now_ms - min(sample), monotonic())


class StoreExtent(NamedTuple):
    """The size of a store on disk, by RocksDB's estimates."""

    rows: int
    bytes: int


class TaskSensors:
    """The sensors of a task.

    Parameters
    ----------
    windows : SampleWindows
    debug : DebugSensors, optional
        Sensors of the recording level DEBUG.

    Attributes
    ----------
    read, written : RecordAges
        By the names of topics in Kafka.
    dropped : Growth
        The records that the task dropped.
    extents : mapping of str to StoreExtent
        By store, as of the last commit.
    properties : mapping of str to mapping of str to int
        RocksDB's properties by store, as of the last commit.
    live_bytes : int
        The memory that live values took at the last commit.
    """

    def __init__(self, windows: SampleWindows, debug: DebugSensors | None = None) -> None:
        self.read = RecordAges(windows)
        self.written = RecordAges(windows)
        self.debug = debug
        self.dropped = Growth(windows)
        self.live_bytes = 0
        self.extents: Mapping[str, StoreExtent] = {}
        self.properties: Mapping[str, Mapping[str, int]] = {}

    @classmethod
    def of(cls, config: Config, sub_topology: SubTopology, state: TaskState) -> TaskSensors:
        """Return the sensors for the recording level of the configuration."""
        windows = SampleWindows.of(config)
        return cls(windows, DebugSensors(windows, sub_topology, state) if records_debug(config) else None)

    def record_run(self, task: Task) -> None:
        """Record that a run of records was processed."""
        self.dropped.update(task.dropped.total())

    def record_commit(self, task: Task, state: TaskState) -> None:
        """Record a commit, after the stores have written it to disk. The thread that owns the stores calls it."""
        self.extents = {store: StoreExtent(*state.estimated_size(store)) for store in state.stores}
        self.properties = {store: state.database_properties(store, ROCKSDB_PROPERTIES) for store in state.stores}
        self.live_bytes = state.num_bytes_live()
        if self.debug is not None:
            self.debug.record_commit(task, state)


class UpdaterSensors:
    """The sensors of a state updater.

    Parameters
    ----------
    windows : SampleWindows

    Attributes
    ----------
    restoring, updating : Samples
        Seconds that restoring active tasks took, and updating standby tasks.
    restored, updated : dict of str to Samples
        Changelog records applied to active tasks, and to standby tasks, by task.

    Examples
    --------
    >>> sensors = UpdaterSensors(SampleWindows(30, 2))
    >>> sensors.record_restored("0_1", "counts", 500), sensors.record_restored("0_1", "counts", 800)
    (None, None)
    >>> sensors.restored["0_1"].total
    800.0
    """

    def __init__(self, windows: SampleWindows) -> None:
        self._windows = windows
        self._restored_records = dict[tuple[str, str], int]()
        self.restoring = windows.samples()
        self.updating = windows.samples()
        self.restored: dict[str, Samples] = {}
        self.updated: dict[str, Samples] = {}

    def record_seconds(self, samples: Samples, started_at: float) -> None:
        """Record work that ends now and started at a second of the monotonic clock."""
        now = monotonic()
        samples.record(now - started_at, now)

    def record_restored(self, task: str, store: str, records: int) -> None:
        """Record how many records of a store are restored so far. A lower number is a restore that began again."""
        before = self._restored_records.get((task, store), 0)
        self._restored_records[task, store] = records
        if records > before:
            self._samples(self.restored, task).record(records - before, monotonic())

    def record_updated(self, records: Mapping[str, int]) -> None:
        """Record the numbers of records that were applied to standby tasks, by task."""
        for task, count in records.items():
            self._samples(self.updated, task).record(count, monotonic())

    def _samples(self, of_tasks: dict[str, Samples], task: str) -> Samples:
        return of_tasks.setdefault(task, self._windows.samples())

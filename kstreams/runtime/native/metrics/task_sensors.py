"""`TaskSensors`: what a task measures of itself: the ages of its records, what it drops, the extents of its stores."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import NamedTuple

import pyarrow as pa

from kstreams.config import Config
from kstreams.processor.task.task import Task
from kstreams.processor.topology.nodes import SubTopology
from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.growth import Growth
from kstreams.runtime.metrics.samples import Samples
from kstreams.runtime.native.metrics.debug_sensors import DebugSensors, records_debug
from kstreams.state.api import TaskState

_LOOKED_AT = 32
"""Of more records at once, as many evenly spaced ones stand for all: it is to cost next to nothing."""


class RecordAges:
    """The ages of the records of each topic that a task reads, or writes; and the time of the last one.

    They are those of all records where no more than 32 come at once, else of evenly spaced ones.

    Examples
    --------
    >>> ages = RecordAges(SampleWindows(30, 2))
    >>> ages.seen("orders", pa.array([1_000, 3_000]), now_ms=5_000)
    >>> found = ages.by_topic["orders"]
    >>> found.lowest(monotonic()), found.average(monotonic()), found.highest(monotonic())
    (2000, 3000.0, 4000)
    """

    __slots__ = ("_windows", "by_topic", "last_ms")

    def __init__(self, windows: SampleWindows) -> None:
        self._windows = windows
        self.by_topic: dict[str, Samples] = {}
        self.last_ms: dict[str, int] = {}

    def seen(self, topic: str, timestamps: pa.Array, now_ms: int) -> None:
        """Records of a topic are processed or written now."""
        times = timestamps.to_numpy()
        count = len(timestamps)
        if not count:
            return
        if topic not in self.by_topic:
            self.by_topic[topic] = self._windows.samples()
        self.last_ms[topic] = int(times[-1])
        step = count // _LOOKED_AT + 1
        sample = times[step // 2 :: step].tolist()  # builtins are faster than numpy for so few
        total = count * (now_ms - sum(sample) / len(sample))
        self.by_topic[topic].record_many(count, total, now_ms - max(sample), now_ms - min(sample), monotonic())


class StoreExtent(NamedTuple):
    """How much a store holds on disk, roughly: RocksDB's estimates."""

    rows: int
    bytes: int


class TaskSensors:
    """The measurements of one task.

    Parameters
    ----------
    windows : SampleWindows
    debug : DebugSensors, optional
        Where they are asked for.

    Attributes
    ----------
    read, written : RecordAges
        By the real names of topics.
    dropped : Growth
    extents : mapping of str to StoreExtent
        By store, as of the last commit.
    properties : mapping of str to mapping of str to int
        What RocksDB says of each store, as of the last commit.
    live_bytes : int
        What live values took in memory then.
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
        """As the configuration asks for."""
        windows = SampleWindows.of(config)
        return cls(windows, DebugSensors(windows, sub_topology, state) if records_debug(config) else None)

    def after_run(self, task: Task) -> None:
        """A run of records was processed."""
        self.dropped.reached(task.dropped.total())

    def committed(self, task: Task, state: TaskState) -> None:
        """What the stores hold is on disk; called by the thread that owns them."""
        self.extents = {store: StoreExtent(*state.estimated_size(store)) for store in state.stores}
        self.properties = {store: state.database_properties(store) for store in state.stores}
        self.live_bytes = state.num_bytes_live()
        if self.debug is not None:
            self.debug.committed(task, state)

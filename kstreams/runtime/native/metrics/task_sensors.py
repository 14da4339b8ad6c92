"""`TaskSensors`: what a task measures of itself: the ages of its records, what it drops, the extents of its stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kstreams.config import Config
from kstreams.processor.task.task import Task
from kstreams.processor.topology.nodes import SubTopology
from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.growth import Growth
from kstreams.runtime.native.metrics.debug_sensors import DebugSensors, records_debug
from kstreams.runtime.native.metrics.record_ages import RecordAges
from kstreams.state.api import TaskState


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

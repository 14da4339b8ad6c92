"""`TaskSensors`: what a task measures of itself: its records and their ages, the extents of its stores, their hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kstreams.config import Config
from kstreams.processor.task.task import Task
from kstreams.processor.topology.nodes import SubTopology
from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.growth import Growth
from kstreams.runtime.native.metrics.cache_hits import CacheHits
from kstreams.runtime.native.metrics.record_ages import RecordAges
from kstreams.runtime.native.metrics.recording_level import records_debug
from kstreams.runtime.native.metrics.suppress_sensors import SuppressSensors, suppress_sensors
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
    hits : CacheHits, optional
        Where look-ups are counted.
    suppress : sequence of SuppressSensors
        Where buffers are looked at.

    Attributes
    ----------
    read, written : RecordAges
        By the real names of topics.
    dropped : Growth
    extents : mapping of str to StoreExtent
        By store, as of the last commit.
    """

    def __init__(
        self, windows: SampleWindows, hits: CacheHits | None = None, suppress: Sequence[SuppressSensors] = ()
    ) -> None:
        self.read, self.written, self.hits = RecordAges(windows), RecordAges(windows), hits
        self.dropped, self.suppress = Growth(windows), suppress
        self.extents: dict[str, StoreExtent] = {}

    @classmethod
    def of(cls, config: Config, sub_topology: SubTopology, state: TaskState) -> TaskSensors:
        """As the configuration asks for."""
        windows = SampleWindows.of(config)
        if not records_debug(config):
            return cls(windows)
        return cls(windows, CacheHits(windows, state.reads()), suppress_sensors(windows, sub_topology, state))

    def after_run(self, task: Task) -> None:
        """A run of records was processed."""
        self.dropped.reached(task.dropped.total())
        if self.hits is not None:
            self.hits.after_run()
        self._look_at_buffers(task)

    def committed(self, task: Task, state: TaskState) -> None:
        """What the stores hold is on disk; called by the thread that owns them."""
        self.extents = {store: StoreExtent(*state.estimated_size(store)) for store in state.stores}
        self._look_at_buffers(task)

    def _look_at_buffers(self, task: Task) -> None:
        for each in self.suppress:
            each.look(task.forwarded)

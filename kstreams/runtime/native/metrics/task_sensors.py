"""`TaskSensors`: what a task measures of itself: the ages of its records, the extents of its stores, their hits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kstreams.config import Config
from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.native.metrics.cache_hits import CacheHits
from kstreams.runtime.native.metrics.record_ages import RecordAges
from kstreams.runtime.native.metrics.recording_level import records_debug
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

    Attributes
    ----------
    read, written : RecordAges
        By the real names of topics.
    extents : mapping of str to StoreExtent
        By store, as of the last commit.
    """

    def __init__(self, windows: SampleWindows, hits: CacheHits | None = None) -> None:
        self.read, self.written, self.hits = RecordAges(windows), RecordAges(windows), hits
        self.extents: dict[str, StoreExtent] = {}

    @classmethod
    def of(cls, config: Config, state: TaskState) -> TaskSensors:
        """As the configuration asks for."""
        windows = SampleWindows.of(config)
        return cls(windows, CacheHits(windows, state.reads()) if records_debug(config) else None)

    def after_run(self) -> None:
        """Records were processed."""
        if self.hits is not None:
            self.hits.after_run()

    def committed(self, state: TaskState, stores: Iterable[str]) -> None:
        """What these stores hold is on disk; called by the thread that owns them."""
        self.extents = {store: StoreExtent(*state.estimated_size(store)) for store in stores}

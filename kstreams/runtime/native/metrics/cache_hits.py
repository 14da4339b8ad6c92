"""`CacheHits`: which part of the look-ups of a task's stores live values answer, without a read of RocksDB."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.samples import Samples
from kstreams.state.rows.store_reads import StoreReads


class CacheHits:
    """The hit ratios of the stores of one task, run by run.

    Parameters
    ----------
    windows : SampleWindows
    reads : mapping of str to StoreReads
        By store, as they go on.

    Examples
    --------
    >>> reads = StoreReads()
    >>> hits = CacheHits(SampleWindows(30, 2), {"counts": reads})
    >>> reads.look_ups, reads.misses = 8, 2
    >>> hits.after_run()
    >>> hits.by_store["counts"].average(monotonic())
    0.75
    """

    __slots__ = ("_before", "_reads", "_windows", "by_store")

    def __init__(self, windows: SampleWindows, reads: Mapping[str, StoreReads]) -> None:
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

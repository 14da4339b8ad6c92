"""`SlicePositions`: how many rows of a slice a task has processed, committed with its offsets.

The rows of a slice are processed in another order than that of their offsets, so that an offset alone does not say
which of them are processed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kstreams.kernel.batch import TopicPartition

_END = "slice_end"
_ROWS = "slice_rows"


class SlicePosition(NamedTuple):
    """How much of a slice is processed: the offset after the slice, and the number of processed rows."""

    end: int
    rows: int


class SliceRegion(NamedTuple):
    """A part of a partition whose rows are processed in another order than that of their offsets.

    Parameters
    ----------
    start, end : int
        The first offset, and the offset after the last one.
    offsets : numpy int64 array, shape (n,)
        The offsets of the rows in the order of processing.
    """

    start: int
    end: int
    offsets: np.ndarray[Any, Any]

    @classmethod
    def of(cls, offsets: np.ndarray[Any, Any]) -> SliceRegion:
        """Return the region of rows with these offsets."""
        return cls(int(offsets.min()), int(offsets.max()) + 1, offsets)


class SlicePositions:
    """The positions of one task.

    Parameters
    ----------
    metadata : mapping of str to int
        The metadata that was committed with the offsets of the task's inputs.

    Examples
    --------
    >>> source, positions = TopicPartition("t", 0), SlicePositions({})
    >>> positions.add(source, SliceRegion.of(np.array([5, 3, 4])))
    >>> positions.after(source, 3), positions.metadata()
    (3, {'slice_end t': 6, 'slice_rows t': 2})
    >>> positions.after(source, 4), positions.metadata()
    (6, {})
    """

    def __init__(self, metadata: Mapping[str, int]) -> None:
        self._regions: dict[str, deque[SliceRegion]] = {}
        ends = {name.removeprefix(f"{_END} "): end for name, end in metadata.items() if name.startswith(f"{_END} ")}
        self._processed = {topic: SlicePosition(end, metadata[f"{_ROWS} {topic}"]) for topic, end in ends.items()}

    def unfinished(self, source: TopicPartition) -> SlicePosition | None:
        """Return how much of the first slice of an input is processed, or None if no part of it is."""
        return self._processed.get(source.topic)

    def add(self, source: TopicPartition, region: SliceRegion) -> None:
        """Add a region. Its rows are processed after all that were added before."""
        self._regions.setdefault(source.topic, deque()).append(region)

    def after(self, source: TopicPartition, offset: int) -> int:
        """Return the next offset to commit after the row at an offset was processed."""
        regions = self._regions.get(source.topic)
        while regions and regions[0].end <= offset:
            regions.popleft()
            self._processed.pop(source.topic, None)
        if not regions or offset < regions[0].start:
            return offset + 1
        region = regions[0]
        rows = int(np.flatnonzero(region.offsets == offset)[0]) + 1
        if rows < len(region.offsets):
            self._processed[source.topic] = SlicePosition(region.end, rows)
            return region.start
        self.skip(source, region.end)
        return region.end

    def skip(self, source: TopicPartition, offset: int) -> None:
        """Note that all rows before an offset are processed or skipped."""
        regions = self._regions.get(source.topic, deque[SliceRegion]())
        while regions and regions[0].end <= offset:
            regions.popleft()
        if source.topic in self._processed and self._processed[source.topic].end <= offset:
            del self._processed[source.topic]

    def metadata(self) -> dict[str, int]:
        """Return the metadata to commit with the offsets."""
        metadata: dict[str, int] = {}
        for topic, position in self._processed.items():
            metadata |= {f"{_END} {topic}": position.end, f"{_ROWS} {topic}": position.rows}
        return metadata

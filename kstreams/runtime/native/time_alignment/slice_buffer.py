"""`SliceBuffer`: rows of one repartition partition, buffered until their slice is complete, and then sorted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import HEADERS_TYPE, Batch
from kstreams.runtime.native.time_alignment.row_tags import TaggedRows, untagged
from kstreams.runtime.native.time_alignment.slice_positions import SlicePosition, SliceRegion
from kstreams.runtime.native.time_alignment.slices import Slice


class OrderedRows(NamedTuple):
    """Rows to process next, and their region of the partition if their order is not that of offsets."""

    rows: Batch
    region: SliceRegion | None


class SliceBuffer:
    """The rows of one partition that were read and may not be processed yet.

    A slice is complete when its writers have begun a later one, and all rows that they had written by then are read.
    Its rows are sorted by the stream times of their writers, and rows with equal times by writer. Rows without a tag
    were written when no writer waited for another, and keep their place.

    Parameters
    ----------
    unfinished : SlicePosition, optional
        How much of the first slice was processed at the last commit.
    """

    def __init__(self, unfinished: SlicePosition | None = None) -> None:
        self._buffered: list[TaggedRows] = []
        self._latest = -1
        self._unfinished = unfinished
        self.num_bytes = 0

    @property
    def is_empty(self) -> bool:
        """True if no row is buffered."""
        return not self._buffered

    @property
    def first_offset(self) -> int:
        """The offset of the first buffered row."""
        return int(self._buffered[0].rows.offsets[0])

    @property
    def last_slice(self) -> int:
        """The slice of the last row that was added."""
        return self._latest

    def add(self, batch: Batch, latest: Slice) -> None:
        """Add rows as they were read. `latest` is the present slice of their writers."""
        rows = untagged(batch)
        slices = np.where(rows.slices < 0, latest.number if latest.is_open_ended else -1, rows.slices)
        slices = np.maximum.accumulate(np.maximum(slices, self._latest))
        self._latest = int(slices[-1])
        self._buffered.append(rows._replace(slices=slices))
        self.num_bytes += batch.keys.nbytes + batch.values.nbytes

    def take(self, latest: Slice, *, is_read: bool) -> list[OrderedRows]:
        """Remove and return the rows of complete slices, slice by slice.

        Parameters
        ----------
        latest : Slice
        is_read : bool
            True if all rows are read that were written before the latest slice began.
        """
        end = latest.number + 1 if latest.is_open_ended else latest.number
        if not is_read and self._latest < latest.number:
            end = min(end, self._latest)
        return self._taken(end)

    def take_all(self) -> list[OrderedRows]:
        """Remove and return all rows, of complete slices or not."""
        return self._taken(self._latest + 1)

    def _taken(self, end: int) -> list[OrderedRows]:
        ordered: list[OrderedRows] = []
        if self._unfinished is not None and self._buffered and self._has_all_of(self._unfinished):
            ordered.append(self._resumed(self._unfinished))
        if self._unfinished is not None or not self._buffered or self._buffered[0].slices[0] >= end:
            return ordered
        whole = _concatenated(self._buffered)
        starts = [0, *(np.flatnonzero(np.diff(whole.slices)) + 1).tolist(), len(whole.slices)]
        ends = [stop for stop in starts[1:] if whole.slices[stop - 1] < end]
        ordered += [_in_order(_part(whole, start, stop)) for start, stop in zip(starts, ends, strict=False)]
        self._keep_from(whole, ends[-1])
        return ordered

    def _has_all_of(self, unfinished: SlicePosition) -> bool:
        return int(self._buffered[-1].rows.offsets[-1]) + 1 >= unfinished.end

    def _resumed(self, unfinished: SlicePosition) -> OrderedRows:
        """Return the rows of the unfinished slice that are not processed."""
        whole = _concatenated(self._buffered)
        stop = int(whole.rows.offsets.searchsorted(unfinished.end))
        ordered = _in_order(_part(whole, 0, stop))
        self._keep_from(whole, stop)
        self._unfinished = None
        return OrderedRows(ordered.rows.slice(unfinished.rows, len(ordered.rows)), ordered.region)

    def _keep_from(self, whole: TaggedRows, start: int) -> None:
        later_rows = _part(whole, start, len(whole.slices))
        self._buffered = [later_rows] if len(later_rows.slices) else []
        self.num_bytes = sum(buffered.rows.keys.nbytes + buffered.rows.values.nbytes for buffered in self._buffered)


def _in_order(rows: TaggedRows) -> OrderedRows:
    """Sort the rows of one slice."""
    if (rows.writers < 0).all():
        return OrderedRows(rows.placed(), None)
    order = np.lexsort((rows.writers, rows.times))
    offsets = rows.rows.offsets[order]
    return OrderedRows(_reordered(rows.placed(), order), SliceRegion.of(offsets))


def _reordered(rows: Batch, order: np.ndarray[Any, Any]) -> Batch:
    indices = pa.array(order)
    keys, values, times = (column.take(indices) for column in (rows.keys, rows.values, rows.timestamps))
    headers = None if rows.headers is None else rows.headers.take(indices)
    written_at = None if rows.written_at is None else rows.written_at[order]
    return Batch(rows.source, rows.offsets[order], keys, values, times, headers, written_at=written_at)


def _part(rows: TaggedRows, start: int, stop: int) -> TaggedRows:
    tags = (column[start:stop] for column in rows[1:])
    return TaggedRows(rows.rows.slice(start, stop), *tags)


def _concatenated(parts: list[TaggedRows]) -> TaggedRows:
    if len(parts) == 1:
        return parts[0]
    batches = [part.rows for part in parts]
    slices, times, writers = (np.concatenate(column) for column in list(zip(*parts, strict=True))[1:])
    return TaggedRows(_joined(batches), slices, times, writers)


def _joined(batches: list[Batch]) -> Batch:
    """Return consecutive rows of one partition as one batch."""
    keys = pa.concat_arrays([batch.keys for batch in batches])
    values = pa.concat_arrays([batch.values for batch in batches])
    times = pa.concat_arrays([batch.timestamps for batch in batches])
    headers = None
    if any(batch.headers is not None for batch in batches):
        filled = [pa.nulls(len(batch), HEADERS_TYPE) if batch.headers is None else batch.headers for batch in batches]
        headers = pa.concat_arrays(filled)
    offsets = np.concatenate([batch.offsets for batch in batches])
    return Batch(batches[0].source, offsets, keys, values, times, headers)

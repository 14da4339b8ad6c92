"""`ReaderSlices`: rows of repartition topics wait until their slice is complete, and then go to their tasks."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Admin, Consumer
from kstreams.runtime.native.time_alignment.process_alignment import ProcessAlignment, Slice
from kstreams.runtime.native.time_alignment.row_tags import TaggedRows, untagged
from kstreams.runtime.native.time_alignment.task_input import SlicePosition, SliceRegion, TaskInput

logger = logging.getLogger(__name__)


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
    def is_unfinished(self) -> bool:
        """True if a part of the first slice was processed before, and not all of its rows are read again."""
        return self._unfinished is not None

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
    ranks = None if rows.ranks is None else rows.ranks[order]
    return Batch(rows.source, rows.offsets[order], keys, values, times, headers, written_at=written_at, ranks=ranks)


def _part(rows: TaggedRows, start: int, stop: int) -> TaggedRows:
    tags = (column[start:stop] for column in rows[1:])
    return TaggedRows(rows.rows.slice(start, stop), *tags)


def _concatenated(parts: list[TaggedRows]) -> TaggedRows:
    if len(parts) == 1:
        return parts[0]
    batches = [part.rows for part in parts]
    tags = (np.concatenate(column) for column in list(zip(*parts, strict=True))[1:])
    return TaggedRows(_joined(batches), *tags)


def _joined(batches: list[Batch]) -> Batch:
    """Return consecutive rows of one partition as one batch."""
    keys = pa.concat_arrays([batch.keys for batch in batches])
    values = pa.concat_arrays([batch.values for batch in batches])
    times = pa.concat_arrays([batch.timestamps for batch in batches])
    headers = None
    if any(batch.headers is not None for batch in batches):
        headers = pa.concat_arrays([batch.headers_or_nulls for batch in batches])
    offsets = np.concatenate([batch.offsets for batch in batches])
    return Batch(batches[0].source, offsets, keys, values, times, headers)


class ReaderSlices:
    """The rows that one thread has read of repartition topics, and whose slices are not complete.

    Parameters
    ----------
    alignment : ProcessAlignment
    consumer : Consumer
    admin : Admin
    internal : collection of str
        The repartition topics.
    max_bytes : int
        If the waiting rows of a partition exceed this size, they are processed before their slice is complete.
    """

    def __init__(
        self,
        alignment: ProcessAlignment,
        consumer: Consumer,
        admin: Admin,
        internal: Collection[str],
        max_bytes: int,
    ) -> None:
        self._alignment = alignment
        self._consumer = consumer
        self._admin = admin
        self._internal = internal
        self._max_bytes = max_bytes
        self._input_of: dict[TopicPartition, TaskInput] = {}
        self._buffers: dict[TopicPartition, SliceBuffer] = {}
        self._ends: dict[TopicPartition, tuple[int, int]] = {}  # a slice, and the end offset when it began

    @property
    def num_bytes(self) -> int:
        """The size of the waiting rows."""
        return sum([buffer.num_bytes for buffer in self._buffers.values()])

    @property
    def is_active(self) -> bool:
        """True if writers read history, so that slices follow each other soon."""
        return self._alignment.is_active()

    def assign(self, inputs: Iterable[TaskInput]) -> None:
        """Hold rows for these tasks and no others."""
        before = self._input_of
        self._input_of = {source: task_input for task_input in inputs for source in task_input.plan.inputs}
        for source, task_input in self._input_of.items():
            if before.get(source) is not task_input:
                self._ends.pop(source, None)
                unfinished = task_input.positions.unfinished(source)
                if self._is_sliced(source) or unfinished is not None:
                    self._buffers[source] = SliceBuffer(unfinished)
        self._buffers = {source: buffer for source, buffer in self._buffers.items() if source in self._input_of}

    def add(self, rows: Batch) -> None:
        """Give rows to their task, or hold them until their slice is complete."""
        source = rows.source
        buffer = self._buffers.get(source)
        if buffer is None:
            if not self._alignment.is_shared and rows.headers is not None and source.topic in self._internal:
                rows = untagged(rows).placed()
            return self._input_of[source].add(rows)
        latest = self._alignment.slice_of_topic(source.topic)
        if buffer.is_empty and not buffer.is_unfinished and latest.is_open_ended and rows.headers is None:
            return self._input_of[source].add(rows)
        buffer.add(rows, latest)

    def release(self) -> int:
        """Give the rows of complete slices to their tasks. Return the number of batches."""
        return sum([self._release(source, buffer) for source, buffer in self._buffers.items() if not buffer.is_empty])

    def first_waiting(self, source: TopicPartition) -> int | None:
        """Return the offset of the first waiting row of a partition, or None if no row waits."""
        buffer = self._buffers.get(source)
        return None if buffer is None or buffer.is_empty else buffer.first_offset

    def is_waiting(self, source: TopicPartition) -> bool:
        """Return whether rows of a partition wait, or its writers read history."""
        buffer = self._buffers.get(source)
        if buffer is None:
            return False
        return not buffer.is_empty or not self._alignment.slice_of_topic(source.topic).is_open_ended

    def is_settled(self, source: TopicPartition) -> bool:
        """Return whether the writers of a partition read no history, and all that they wrote of it is read."""
        sub = self._alignment.topics.get(source.topic)
        if sub is None or not self._alignment.is_shared:
            return True
        return self._alignment.is_settled(sub) and self._is_read(source, self._alignment.slice_of(sub).number)

    def _release(self, source: TopicPartition, buffer: SliceBuffer) -> int:
        if not self._is_sliced(source):  # in this run no writer waits; only an unfinished slice of an earlier one does
            return self._give(source, buffer.take_all())
        latest = self._alignment.slice_of_topic(source.topic)
        is_read = buffer.last_slice >= latest.number or self._is_read(source, latest.number)
        ordered_rows = buffer.take(latest, is_read=is_read)
        if not ordered_rows and buffer.num_bytes > self._max_bytes:
            logger.warning("%s: there is no room to wait for the order of its rows", source)
            ordered_rows = buffer.take_all()
        return self._give(source, ordered_rows)

    def _is_sliced(self, source: TopicPartition) -> bool:
        return self._alignment.is_shared and source.topic in self._alignment.topics

    def _give(self, source: TopicPartition, ordered_rows: Collection[OrderedRows]) -> int:
        for rows, region in ordered_rows:
            self._input_of[source].add(rows, region)
        return len(ordered_rows)

    def _is_read(self, source: TopicPartition, number: int) -> bool:
        """Return whether all rows are read that were written before a slice began.

        Kafka makes the rows of a transaction visible some time after it has confirmed the commit. So the end offset
        includes open transactions.
        """
        if self._ends.get(source, (-1, 0))[0] < number:
            self._ends[source] = number, self._admin.end_offsets([source], committed_only=False)[source]
        return self._consumer.position(source) >= self._ends[source][1]

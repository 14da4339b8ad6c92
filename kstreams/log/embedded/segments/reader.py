"""`PartitionReader`: reads one partition in offset order, up to the published end or the first open transaction."""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from kstreams.errors import CorruptLogError, LogError, UnknownTopicError
from kstreams.kernel.batch import Batch
from kstreams.log.api import Span
from kstreams.log.embedded.catalogue.transactions import TransactionState
from kstreams.log.embedded.segments.frame import FrameHeader
from kstreams.log.embedded.segments.index import NO_TIME, entry_before_time, entry_for_offset
from kstreams.log.embedded.segments.partition import Partition, PartitionHead
from kstreams.log.embedded.segments.segment import SUFFIX, ReplacedSegmentError, Segment, segment_path

_logger = logging.getLogger("kstreams.log")
StateOf = Callable[[int], TransactionState]
T = TypeVar("T")


class FrameCursor(NamedTuple):
    """The next frame: its segment, its position there, and its first offset."""

    segment: Segment
    position: int
    offset: int


class SegmentRolledError(Exception):
    """Error when the active segment was rolled during a read."""


class PartitionReader:
    """A reader of a partition from `position` on, while writers roll segments and compaction and retention change them.

    A mapped file does not change. But a file may be replaced or removed after the folder was listed and before the file
    is opened: so reads that find missing or damaged files are repeated, as long as the files change.

    Parameters
    ----------
    partition : Partition
    state_of : callable or None
        Returns the state of a transaction; None reads all records, also hidden and aborted ones.
    reset : {"earliest", "latest", "none"}
        Where to go on if the position is no longer in the log; `none` raises LogError.
    """

    def __init__(self, partition: Partition, state_of: StateOf | None = None, reset: str = "earliest") -> None:
        self.partition = partition
        self._state_of = state_of
        self._reset = reset
        self._cursor: FrameCursor | None = None
        self._remaining: Batch | None = None
        self._remaining_end = 0
        self.position = 0

    def seek(self, offset: int) -> None:
        """Read on from `offset`."""
        self._forget_frames()
        self.position = offset

    def read(self, max_records: int) -> list[Batch]:
        """Return the next batches, at most `max_records` rows in all."""
        batches: list[Batch] = []
        self._repeat_on_change(lambda: self._read(max_records, batches))
        return batches

    def skim(self, end: int) -> Span | None:
        """Count and skip the records of one frame that `read` would return next, up to `end`."""
        return self._repeat_on_change(lambda: self._skim(end))

    def offset_at_time(self, timestamp_ms: int) -> int | None:
        """Return the offset of the first visible record whose timestamp is at or after `timestamp_ms`."""
        return self._repeat_on_change(lambda: self._offset_at_time(timestamp_ms))

    def _repeat_on_change(self, read: Callable[[], T]) -> T:
        """Return the result of a read; an error is raised if it comes again while the files do not change."""
        files_before: object = None
        while True:
            try:
                return read()
            except (FileNotFoundError, ReplacedSegmentError, SegmentRolledError, CorruptLogError) as error:
                self._forget_frames()
                files = self._files()
                if files == files_before:
                    raise self._error_of(error) from error
                files_before = files

    def _files(self) -> object:
        """Return a value that changes when segments are added, removed or replaced."""
        try:
            with os.scandir(self.partition.folder) as entries:
                inodes = {entry.name: entry.inode() for entry in entries if entry.name.endswith(SUFFIX)}
            return self.partition.head().segment, inodes
        except (FileNotFoundError, UnknownTopicError):
            return None

    def _error_of(self, error: Exception) -> LogError:
        if self.partition.is_deleted():
            return UnknownTopicError(f"The topic {self.partition.source.topic!r} was deleted while it was read.")
        if isinstance(error, CorruptLogError):
            return error
        return CorruptLogError(f"{self.partition.folder}: the segment with offset {self.position} is missing.")

    def _read(self, max_records: int, batches: list[Batch]) -> None:
        head = self.partition.head()
        self._seek_into_log(head)
        try:
            while max_records > 0 and (batch := self._next(head, max_records)) is not None:
                batches.append(batch)
                max_records -= len(batch)
        except (LogError, FileNotFoundError, ReplacedSegmentError, SegmentRolledError):
            if not batches:
                raise
            self._forget_frames()  # the next read raises the error; this one returns the rows before it

    def _skim(self, end: int) -> Span | None:
        head = self.partition.head()
        self._seek_into_log(head)
        if self._remaining is not None:
            self._forget_frames()  # the cursor is after the frame with the position
        while self.position < min(end, head.end_offset):
            segment, position, offset = self._locate(head)
            header = segment.checked_header(position, offset)
            state = self._state(header)
            if state is TransactionState.OPEN:
                return None
            span = self._span(segment, position, header, end) if state is TransactionState.COMMITTED else None
            self._cursor = FrameCursor(segment, position + header.size, header.next_offset)
            self.position = header.next_offset
            if end < header.next_offset:
                self.seek(end)
            if span is not None and span.records:
                return span
        return None

    def _span(self, segment: Segment, position: int, header: FrameHeader, end: int) -> Span:
        """Return the records of a frame from the position to `end`; reads its body only for a part of the frame."""
        start = max(self.position, header.base_offset)
        end = min(end, header.next_offset)
        if (start, end) == (header.base_offset, header.next_offset):
            return Span(start, end, header.records, header.max_timestamp)
        batch = segment.checked_body(position, header)
        first, stop = np.searchsorted(batch.offsets, (start, end))
        times = batch.timestamps.to_numpy()[first:stop]
        return Span(start, end, len(times), int(times.max(initial=NO_TIME)))

    def _offset_at_time(self, timestamp_ms: int) -> int | None:
        head = self.partition.head()
        for base in self._bases(head):
            offset = self._first_offset_at_time(self._open(head, base), timestamp_ms, head.start_offset)
            if offset is not None:
                return offset
        return None

    def close(self) -> None:
        """Close the files; batches that were read stay valid."""
        self._forget_frames()
        self.partition.close()

    def _seek_into_log(self, head: PartitionHead) -> None:
        if self.position >= head.start_offset:
            return
        gone = f"{self.partition.source}: the records from offset {self.position} to {head.start_offset} are gone"
        if self._reset == "none":
            raise LogError(f"{gone}: seek to where you want to go on.")
        self.seek(head.start_offset if self._reset == "earliest" else head.end_offset)
        _logger.warning("%s, reading goes on at %d", gone, self.position)

    def _next(self, head: PartitionHead, max_records: int) -> Batch | None:
        if self._remaining is None:
            self._remaining = self._load(head)
        batch = self._remaining
        if batch is None or len(batch) <= max_records:
            self._remaining = None
            self.position = self.position if batch is None else self._remaining_end
            return batch
        self._remaining = batch.slice(max_records, len(batch))
        self.position = int(self._remaining.offsets[0])
        return batch.slice(0, max_records)

    def _load(self, head: PartitionHead) -> Batch | None:
        """Return the visible records of the next frame that has some, from the position on."""
        while self.position < head.end_offset:
            segment, position, offset = self._locate(head)
            header = segment.checked_header(position, offset)
            state = self._state(header)
            if state is TransactionState.OPEN:
                return None
            batch = segment.checked_body(position, header) if state is TransactionState.COMMITTED else None
            self._cursor = FrameCursor(segment, position + header.size, header.next_offset)
            skipped = 0 if batch is None else int(np.searchsorted(batch.offsets, self.position))
            if batch is not None and skipped < len(batch):
                self._remaining_end = header.next_offset
                return batch.slice(skipped, len(batch)) if skipped else batch
            self.position = header.next_offset
        return None

    def _state(self, header: FrameHeader) -> TransactionState:
        if self._state_of is None or header.transaction_id == 0:
            return TransactionState.COMMITTED
        return self._state_of(header.transaction_id)

    def _locate(self, head: PartitionHead) -> FrameCursor:
        cursor = self._cursor
        if cursor is not None and (cursor.position < cursor.segment.limit or self._has_grown(cursor, head)):
            return cursor
        self._cursor = None
        bases = self._bases(head)
        self._cursor = self._find(self._open(head, bases[bisect_right(bases, self.position) - 1]))
        return self._cursor

    def _has_grown(self, cursor: FrameCursor, head: PartitionHead) -> bool:
        """Map the segment of the cursor up to the head; return whether it now has a frame at the cursor."""
        self._map(cursor.segment, head)
        return cursor.position < cursor.segment.limit

    def _find(self, segment: Segment) -> FrameCursor:
        entry = entry_for_offset(segment, self.position)
        for position, header in segment.valid_frames(entry.position, entry.offset):
            if header.base_offset <= self.position < header.next_offset:
                return FrameCursor(segment, position, header.base_offset)
        for _ in segment.frames(entry.position, entry.offset):
            pass  # raises at the damage at the position
        raise segment.damaged(segment.limit, self.position, "the file ends there, but the log goes on")

    def _bases(self, head: PartitionHead) -> list[int]:
        bases = [base for base in self.partition.segments() if base <= head.segment]
        if not bases or bases[0] > max(self.position, head.start_offset):
            raise SegmentRolledError  # retention has removed a segment
        return bases

    def _open(self, head: PartitionHead, base: int) -> Segment:
        segment = Segment(segment_path(self.partition.folder, base), self.partition.source)
        self._map(segment, head)
        return segment

    def _map(self, segment: Segment, head: PartitionHead) -> None:
        if segment.base_offset < head.segment:
            segment.map_all()
            return
        try:
            segment.map(head.position)
        finally:
            # A completed segment may be compacted, and the head's position does not apply to the new file.
            if self.partition.head().segment != head.segment:
                raise SegmentRolledError

    def _first_offset_at_time(self, segment: Segment, timestamp_ms: int, start: int) -> int | None:
        entry = entry_before_time(segment, timestamp_ms)
        for position, header in segment.valid_frames(entry.position, entry.offset):
            if (
                header.max_timestamp < timestamp_ms
                or header.next_offset <= start
                or self._state(header) is TransactionState.ABORTED
            ):
                continue
            batch = segment.checked_body(position, header)
            late = (batch.timestamps.to_numpy() >= timestamp_ms) & (batch.offsets >= start)
            if late.any():
                return int(batch.offsets[int(late.argmax())])
        return None

    def _forget_frames(self) -> None:
        self._cursor = self._remaining = None

"""Reading one partition in offset order, frame by frame, up to the published end or the first open transaction."""

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
from kstreams.log.embedded.segments.head import PartitionHead
from kstreams.log.embedded.segments.index import NO_TIME, entry_before_time, entry_for_offset
from kstreams.log.embedded.segments.partition import Partition
from kstreams.log.embedded.segments.segment import SUFFIX, ReplacedSegmentError, Segment, segment_path

_logger = logging.getLogger("kstreams.log")
StateOf = Callable[[int], TransactionState]
T = TypeVar("T")


class FrameCursor(NamedTuple):
    """The frame that comes next: its segment, its place there, and its first offset."""

    segment: Segment
    position: int
    offset: int


class SegmentRolledError(Exception):
    """The active segment is another one than when we began to look."""


class PartitionReader:
    """Reads a partition from `position` on, while writers roll segments and compaction and retention change them.

    What lies in a file that is mapped stays there. Between the look at the folder and the opening of a file, though,
    another may come into its place, or none: so what seems to be missing or damaged is looked at again, as long as
    the files change.

    Parameters
    ----------
    partition : Partition
    fate_of : callable or None
        Gives the state of a transaction; None reads everything, hidden and aborted records too.
    reset : {"earliest", "latest", "none"}
        Where to go on when the position is no longer in the log; `none` raises LogError.
    """

    def __init__(self, partition: Partition, state_of: StateOf | None = None, reset: str = "earliest") -> None:
        self.partition = partition
        self._state_of = state_of
        self._reset = reset
        self._cursor: FrameCursor | None = None
        self._rest: Batch | None = None
        self._rest_end = 0
        self.position = 0

    def seek(self, offset: int) -> None:
        """Read on from `offset`."""
        self._leave()
        self.position = offset

    def read(self, max_records: int) -> list[Batch]:
        """The batches there are, at most `max_records` rows together."""
        batches: list[Batch] = []
        self._steadily(lambda: self._read(max_records, batches))
        return batches

    def skim(self, end: int) -> Span | None:
        """What `read` would give next of one frame, as far as it lies before `end`: counted, and passed over."""
        return self._steadily(lambda: self._skim(end))

    def offset_at_time(self, timestamp_ms: int) -> int | None:
        """Offset of the first record to be seen whose timestamp is at or after `timestamp_ms`."""
        return self._steadily(lambda: self._offset_at_time(timestamp_ms))

    def _steadily(self, look: Callable[[], T]) -> T:
        """What a look at the files gives; an error is raised when it comes again while the files do not change."""
        before: object = None
        while True:
            try:
                return look()
            except (FileNotFoundError, ReplacedSegmentError, SegmentRolledError, CorruptLogError) as error:
                self._leave()
                now = self._files()
                if now == before:
                    raise self._told(error) from error
                before = now

    def _files(self) -> object:
        """What changes when segments come, go or are replaced."""
        try:
            with os.scandir(self.partition.folder) as entries:
                found = {entry.name: entry.inode() for entry in entries if entry.name.endswith(SUFFIX)}
            return self.partition.head().segment, found
        except (FileNotFoundError, UnknownTopicError):
            return None

    def _told(self, error: Exception) -> LogError:
        if self.partition.is_deleted():
            return UnknownTopicError(f"The topic {self.partition.source.topic!r} was deleted while it was read.")
        if isinstance(error, CorruptLogError):
            return error
        return CorruptLogError(f"{self.partition.folder}: the segment with offset {self.position} is missing.")

    def _read(self, max_records: int, batches: list[Batch]) -> None:
        head = self.partition.head()
        self._enter(head)
        try:
            while max_records > 0 and (batch := self._next(head, max_records)) is not None:
                batches.append(batch)
                max_records -= len(batch)
        except (LogError, FileNotFoundError, ReplacedSegmentError, SegmentRolledError):
            if not batches:
                raise
            self._leave()  # the next read meets it again, and what came before it is not lost

    def _skim(self, end: int) -> Span | None:
        head = self.partition.head()
        self._enter(head)
        if self._rest is not None:
            self._leave()  # the cursor is behind the frame in which the position lies
        while self.position < min(end, head.end_offset):
            segment, place, offset = self._locate(head)
            header = segment.checked_header(place, offset)
            state = self._state(header)
            if state is TransactionState.OPEN:
                return None
            span = self._span(segment, place, header, end) if state is TransactionState.COMMITTED else None
            self._cursor = FrameCursor(segment, place + header.size, header.next_offset)
            self.position = header.next_offset
            if end < header.next_offset:
                self.seek(end)
            if span is not None and span.records:
                return span
        return None

    def _span(self, segment: Segment, place: int, header: FrameHeader, end: int) -> Span:
        """The records of a frame from the position to `end`; its body is read only if that is not all of them."""
        start = max(self.position, header.base_offset)
        end = min(end, header.next_offset)
        if (start, end) == (header.base_offset, header.next_offset):
            return Span(start, end, header.records, header.max_timestamp)
        batch = segment.checked_body(place, header)
        first, stop = np.searchsorted(batch.offsets, (start, end))
        times = batch.timestamps.to_numpy()[first:stop]
        return Span(start, end, len(times), int(times.max(initial=NO_TIME)))

    def _offset_at_time(self, timestamp_ms: int) -> int | None:
        head = self.partition.head()
        for base in self._bases(head):
            found = self._first_at(self._open(head, base), timestamp_ms, head.start_offset)
            if found is not None:
                return found
        return None

    def close(self) -> None:
        """Release the files; batches that were read stay valid."""
        self._leave()
        self.partition.close()

    def _enter(self, head: PartitionHead) -> None:
        if self.position >= head.start_offset:
            return
        gone = f"{self.partition.source}: the records from offset {self.position} to {head.start_offset} are gone"
        if self._reset == "none":
            raise LogError(f"{gone}: seek to where you want to go on.")
        self.seek(head.start_offset if self._reset == "earliest" else head.end_offset)
        _logger.warning("%s, reading goes on at %d", gone, self.position)

    def _next(self, head: PartitionHead, max_records: int) -> Batch | None:
        if self._rest is None:
            self._rest = self._load(head)
        batch = self._rest
        if batch is None or len(batch) <= max_records:
            self._rest = None
            self.position = self.position if batch is None else self._rest_end
            return batch
        self._rest = batch.slice(max_records, len(batch))
        self.position = int(self._rest.offsets[0])
        return batch.slice(0, max_records)

    def _load(self, head: PartitionHead) -> Batch | None:
        """The next frame that has something to show, cut to what lies at or after the position."""
        while self.position < head.end_offset:
            segment, place, offset = self._locate(head)
            header = segment.checked_header(place, offset)
            state = self._state(header)
            if state is TransactionState.OPEN:
                return None
            batch = segment.checked_body(place, header) if state is TransactionState.COMMITTED else None
            self._cursor = FrameCursor(segment, place + header.size, header.next_offset)
            skipped = 0 if batch is None else int(np.searchsorted(batch.offsets, self.position))
            if batch is not None and skipped < len(batch):
                self._rest_end = header.next_offset
                return batch.slice(skipped, len(batch)) if skipped else batch
            self.position = header.next_offset
        return None

    def _state(self, header: FrameHeader) -> TransactionState:
        if self._state_of is None or header.transaction_id == 0:
            return TransactionState.COMMITTED
        return self._state_of(header.transaction_id)

    def _locate(self, head: PartitionHead) -> FrameCursor:
        if self._cursor is not None and (self._cursor.position < self._cursor.segment.limit or self._grow(head)):
            return self._cursor
        self._cursor = None
        bases = self._bases(head)
        self._cursor = self._find(self._open(head, bases[bisect_right(bases, self.position) - 1]))
        return self._cursor

    def _grow(self, head: PartitionHead) -> bool:
        assert self._cursor is not None
        segment = self._cursor.segment
        self._map(segment, head)
        return self._cursor.position < segment.limit

    def _find(self, segment: Segment) -> FrameCursor:
        entry = entry_for_offset(segment, self.position)
        for place, header in segment.sound_frames(entry.position, entry.offset):
            if header.base_offset <= self.position < header.next_offset:
                return FrameCursor(segment, place, header.base_offset)
        for _ in segment.frames(entry.position, entry.offset):
            pass  # raises at the damage in which the position lies
        raise segment.damaged(segment.limit, self.position, "the file ends there, but the log goes on")

    def _bases(self, head: PartitionHead) -> list[int]:
        bases = [base for base in self.partition.segments() if base <= head.segment]
        if not bases or bases[0] > max(self.position, head.start_offset):
            raise SegmentRolledError  # retention was there
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
            # Once it is complete it may be compacted, and the position says nothing about the file that comes then.
            if self.partition.head().segment != head.segment:
                raise SegmentRolledError

    def _first_at(self, segment: Segment, timestamp_ms: int, start: int) -> int | None:
        entry = entry_before_time(segment, timestamp_ms)
        for place, header in segment.sound_frames(entry.position, entry.offset):
            if (
                header.max_timestamp < timestamp_ms
                or header.next_offset <= start
                or self._state(header) is TransactionState.ABORTED
            ):
                continue
            batch = segment.checked_body(place, header)
            late = (batch.timestamps.to_numpy() >= timestamp_ms) & (batch.offsets >= start)
            if late.any():
                return int(batch.offsets[int(late.argmax())])
        return None

    def _leave(self) -> None:
        self._cursor = self._rest = None

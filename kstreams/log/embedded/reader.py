"""Reading one partition in offset order, frame by frame, up to the published end or the first open transaction."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from contextlib import closing, suppress
from typing import NamedTuple

import numpy as np

from kstreams.batch import Batch
from kstreams.errors import CorruptLogError, LogError, UnknownTopicError
from kstreams.log.embedded.frame import FrameHeader
from kstreams.log.embedded.head import Head
from kstreams.log.embedded.index import entry_before_time, entry_for_offset
from kstreams.log.embedded.partition import Partition
from kstreams.log.embedded.segment import Segment, segment_path
from kstreams.log.embedded.transactions import Fate

_ATTEMPTS = 3
_logger = logging.getLogger("kstreams.log")
FateOf = Callable[[int], Fate]


class Cursor(NamedTuple):
    """The frame that comes next: its segment, its place there, and its first offset."""

    segment: Segment
    position: int
    offset: int


class PartitionReader:
    """Reads a partition from `position` on.

    Parameters
    ----------
    partition : Partition
    fate_of : callable or None
        Tells what became of a transaction; None reads everything, hidden and aborted records too.
    reset : {"earliest", "latest", "none"}
        Where to go on when the position is no longer in the log; `none` raises LogError.
    """

    def __init__(self, partition: Partition, fate_of: FateOf | None = None, reset: str = "earliest") -> None:
        self.partition, self._fate_of, self._reset = partition, fate_of, reset
        self._cursor: Cursor | None = None
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
        for attempt in range(_ATTEMPTS):
            try:
                self._read(max_records, batches)
                break
            except FileNotFoundError as gone:
                # Retention or compaction removed the segment between our look at the folder and the opening.
                self._leave()
                if batches:
                    break
                if attempt == _ATTEMPTS - 1:
                    raise self._missing() from gone
        return batches

    def _read(self, max_records: int, batches: list[Batch]) -> None:
        head = self.partition.head()
        self._enter(head)
        try:
            while max_records > 0 and (batch := self._next(head, max_records)) is not None:
                batches.append(batch)
                max_records -= len(batch)
        except LogError:
            if not batches:
                raise  # else the next read meets it again, and what came before it is not lost

    def offset_at_time(self, timestamp_ms: int) -> int | None:
        """Offset of the first record to be seen whose timestamp is at or after `timestamp_ms`."""
        head, found = self.partition.head(), None
        for base in self._bases(head):
            with suppress(FileNotFoundError), closing(self._open(head, base)) as segment:
                found = self._first_at(segment, timestamp_ms, head.start_offset)
            if found is not None:
                return found
        return None

    def close(self) -> None:
        """Release the files; batches that were read stay valid."""
        self._leave()
        self.partition.close()

    def _enter(self, head: Head) -> None:
        if self.position >= head.start_offset:
            return
        gone = f"{self.partition.source}: the records from offset {self.position} to {head.start_offset} are gone"
        if self._reset == "none":
            raise LogError(f"{gone}: seek to where you want to go on.")
        self.seek(head.start_offset if self._reset == "earliest" else head.end_offset)
        _logger.warning("%s, reading goes on at %d", gone, self.position)

    def _next(self, head: Head, max_records: int) -> Batch | None:
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

    def _load(self, head: Head) -> Batch | None:
        """The next frame that has something to show, cut to what lies at or after the position."""
        while self.position < head.end_offset:
            segment, place, offset = self._locate(head)
            header = segment.checked_header(place, offset)
            fate = self._fate(header)
            if fate is Fate.OPEN:
                return None
            batch = segment.checked_body(place, header) if fate is Fate.COMMITTED else None
            self._cursor = Cursor(segment, place + header.size, header.next_offset)
            skipped = 0 if batch is None else int(np.searchsorted(batch.offsets, self.position))
            if batch is not None and skipped < len(batch):
                self._rest_end = header.next_offset
                return batch.slice(skipped, len(batch)) if skipped else batch
            self.position = header.next_offset
        return None

    def _fate(self, header: FrameHeader) -> Fate:
        if self._fate_of is None or header.transaction_id == 0:
            return Fate.COMMITTED
        return self._fate_of(header.transaction_id)

    def _locate(self, head: Head) -> Cursor:
        if self._cursor is not None and (self._cursor.position < self._cursor.segment.limit or self._grow(head)):
            return self._cursor
        bases = self._bases(head)
        base = bases[bisect_right(bases, self.position) - 1]
        if self._cursor is not None:
            self._cursor.segment.close()
        segment = self._open(head, base)
        self._cursor = self._find(segment)
        return self._cursor

    def _grow(self, head: Head) -> bool:
        assert self._cursor is not None
        segment, position, _ = self._cursor
        if segment.base_offset == head.segment:
            segment.map(head.position, position)
        else:
            segment.map_all(position)
        return position < segment.limit

    def _find(self, segment: Segment) -> Cursor:
        entry = entry_for_offset(segment, self.position)
        for place, header in segment.sound_frames(entry.position, entry.offset):
            if header.base_offset <= self.position < header.next_offset:
                return Cursor(segment, place, header.base_offset)
        for _ in segment.frames(entry.position, entry.offset):
            pass  # raises at the damage in which the position lies
        raise segment.damaged(segment.limit, self.position, "the file ends there, but the log goes on")

    def _bases(self, head: Head) -> list[int]:
        bases = [base for base in self.partition.segments() if base <= head.segment]
        if not bases or bases[0] > max(self.position, head.start_offset):
            return self._bases_after_retention(bases)
        return bases

    def _bases_after_retention(self, bases: list[int]) -> list[int]:
        head = self.partition.head()
        self._enter(head)
        if not bases or bases[0] > self.position:
            raise self._missing()
        return bases

    def _missing(self) -> LogError:
        if self.partition.is_deleted():
            return UnknownTopicError(f"The topic {self.partition.source.topic!r} was deleted while it was read.")
        return CorruptLogError(f"{self.partition.folder}: the segment with offset {self.position} is missing.")

    def _open(self, head: Head, base: int) -> Segment:
        segment = Segment(segment_path(self.partition.folder, base), self.partition.source)
        if base == head.segment:
            segment.map(head.position)
        else:
            segment.map_all()
        return segment

    def _first_at(self, segment: Segment, timestamp_ms: int, start: int) -> int | None:
        entry = entry_before_time(segment, timestamp_ms)
        for place, header in segment.sound_frames(entry.position, entry.offset):
            if header.max_timestamp < timestamp_ms or header.next_offset <= start or self._fate(header) is Fate.ABORTED:
                continue
            batch = segment.checked_body(place, header)
            late = (batch.timestamps.to_numpy() >= timestamp_ms) & (batch.offsets >= start)
            if late.any():
                return int(batch.offsets[int(late.argmax())])
        return None

    def _leave(self) -> None:
        if self._cursor is not None:
            self._cursor.segment.close()
        self._cursor = self._rest = None

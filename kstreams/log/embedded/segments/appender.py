"""`Appender`: appends frames to a partition, after cutting bytes that a dead writer left."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

from kstreams.errors import CorruptLogError, FencedError, LogError
from kstreams.kernel.clock import Clock
from kstreams.log.embedded.disk import create_file
from kstreams.log.embedded.segments import frame
from kstreams.log.embedded.segments.index import INTERVAL, NO_TIME, IndexEntry, append_entry, index_path
from kstreams.log.embedded.segments.partition import Partition, PartitionHead
from kstreams.log.embedded.segments.segment import Segment, segment_path


class SegmentLimits(NamedTuple):
    """The limits of a segment: bytes, and milliseconds since its first record."""

    segment_bytes: int
    segment_ms: int


class AppendAttempt(NamedTuple):
    """The start of an append, and its sequence number."""

    segment: int
    position: int
    offset: int
    sequence: int


class Appender:
    """A writer of frames at the end of one partition.

    Parameters
    ----------
    partition : Partition
    limits : SegmentLimits
    clock : Clock
    durability : {"none", "os", "fsync"}
        `fsync`: when `append` returns, the frames are on the disk. `os`: the operating system has them, and segments
        are synced when they are full. `none`: nothing is synced.
    on_roll : callable
        Called after a segment was completed, without the lock.
    """

    def __init__(
        self, partition: Partition, limits: SegmentLimits, clock: Clock, durability: str, on_roll: Callable[[], None]
    ) -> None:
        self.partition = partition
        self._limits = limits
        self._clock = clock
        self._durability = durability
        self._on_roll = on_roll
        self._segment = -1
        self._attempt: AppendAttempt | None = None

    def append(
        self,
        bodies: Sequence[frame.FrameBody],
        stamp: frame.TransactionStamp = frame.UNSTAMPED,
        *,
        timeout: float | None = None,
        before: Callable[[int], None] | None = None,
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
        sync: bool = True,
    ) -> int:
        """Append frames as one: readers see all of them or none.

        Parameters
        ----------
        bodies : sequence of FrameBody
        stamp : TransactionStamp
        timeout : float or None
            Seconds to wait for other writers.
        before : callable or None
            Called with the first offset, under the lock and before anything is written.
        guard : callable
            A context manager around the moment in which the frames become visible; if it raises FencedError, they do
            not.
        sync : bool
            False leaves the sync to a later `sync()` (a transaction syncs once, at its commit).

        Returns
        -------
        int
            Offset of the first record.

        Raises
        ------
        PartitionBusyError, FencedError, LogError
            None of the frames is in the log.
        """
        with self.partition.locked(timeout), self._reopening("append to"):
            head = self._checked_end(self.partition.head_locked())
            rolled = head.position > 0 and self._is_due(
                head, sum(frame.HEADER_SIZE + body.data.size for body in bodies)
            )
            if rolled:
                head = self._roll(head)
            if before is not None:
                before(head.end_offset)
            self._write(head, bodies, stamp, guard, sync=sync and self._durability == "fsync")
        if rolled:
            self._on_roll()
        return head.end_offset

    def written_before(self, sequence: int, timeout: float | None = None) -> int | None:
        """Return the offset at which an append of unknown outcome has written; None if it has not."""
        attempt = self._attempt
        if attempt is None or attempt.sequence != sequence:
            return None
        with self.partition.locked(timeout), self._reopening("look into"):
            head = self._checked_end(self.partition.head_locked())
            segment = Segment(segment_path(self.partition.folder, attempt.segment), self.partition.source)
            segment.map(head.position) if attempt.segment == head.segment else segment.map_all()
            try:
                header = segment.header_at(attempt.position)
            except frame.BadFrameError:
                return None
        return attempt.offset if (header.base_offset, header.sequence) == (attempt.offset, sequence) else None

    def roll(self, *, now: bool = False) -> bool:
        """Complete the active segment if it is due, or `now`; return whether it was completed."""
        with self.partition.locked(), self._reopening("roll"):
            head = self._checked_end(self.partition.head_locked())
            is_due = head.position > 0 and (now or self._is_due(head, 0))
            if is_due:
                self._roll(head)
        return is_due

    def sync(self) -> None:
        """Make the active segment durable, with the records of all appenders."""
        if self._segment >= 0 and self._durability == "fsync":
            # If the file is gone, it was compacted: the process that rolled the segment has synced it.
            with (
                self._reopening("sync"),
                suppress(FileNotFoundError),
                self.partition.active(self._segment) as fd,
            ):
                self.partition.disk.sync(fd)

    def close(self) -> None:
        """Close the files."""
        self.partition.close()

    def _write(
        self,
        head: PartitionHead,
        bodies: Sequence[frame.FrameBody],
        stamp: frame.TransactionStamp,
        guard: Callable[[], AbstractContextManager[None]],
        *,
        sync: bool,
    ) -> None:
        parts: list[Any] = []
        self._attempt = AppendAttempt(head.segment, head.position, head.end_offset, stamp.sequence)
        offset = head.end_offset
        position = head.position
        greatest = head.max_timestamp
        for body in bodies:
            parts += [frame.encode_header(body, offset, stamp), body.data]
            offset = offset + body.records
            position = position + frame.HEADER_SIZE + body.data.size
            greatest = max(greatest, body.max_timestamp)
        created_ms = head.created_ms or self._clock.wall_ms()
        synced = position if sync else head.synced
        grown = PartitionHead(head.start_offset, offset, head.segment, position, created_ms, greatest, synced)
        self._store(parts, head, grown, guard, sync=sync)
        if head.position // INTERVAL != position // INTERVAL:
            append_entry(segment_path(self.partition.folder, head.segment), IndexEntry(offset, position, greatest))

    def _store(
        self,
        parts: list[Any],
        head: PartitionHead,
        grown: PartitionHead,
        guard: Callable[[], AbstractContextManager[None]],
        *,
        sync: bool,
    ) -> None:
        disk = self.partition.disk
        with self.partition.active(head.segment) as fd:
            try:
                disk.write_at(fd, parts, head.position)
                if sync:
                    disk.sync(fd)
                with guard():
                    self.partition.publish(grown)
            except (OSError, FencedError):
                disk.cut(fd, head.position)  # at once: a torn head is rebuilt from the segment
                raise

    def _checked_end(self, head: PartitionHead) -> PartitionHead:
        """Cut bytes that a dead writer left after the end, and check that the segment is complete up to it."""
        if self._segment not in (-1, head.segment):
            self.partition.close_active(self._segment)
        self._segment = head.segment
        if not head.position:
            os.close(create_file(segment_path(self.partition.folder, head.segment)))
        try:
            with self.partition.active(head.segment) as fd:
                status = os.fstat(fd)
                if status.st_size > head.position and status.st_nlink:
                    self.partition.disk.cut(fd, head.position)
        except FileNotFoundError:
            raise self._too_short(head, "is missing") from None
        if not status.st_nlink:  # another file has replaced it
            self.partition.close_active(head.segment)
            return self._checked_end(head)
        if status.st_size < head.position:
            raise self._too_short(head, f"has {status.st_size} bytes")
        return head

    def _too_short(self, head: PartitionHead, finding: str) -> CorruptLogError:
        path = segment_path(self.partition.folder, head.segment)
        return CorruptLogError(f"{path} {finding}, its head says {head.position} bytes: it was cut from outside.")

    def _is_due(self, head: PartitionHead, more: int) -> bool:
        too_big = head.position + more > self._limits.segment_bytes
        return too_big or (head.created_ms > 0 and self._clock.wall_ms() - head.created_ms >= self._limits.segment_ms)

    def _roll(self, head: PartitionHead) -> PartitionHead:
        disk = self.partition.disk
        folder = self.partition.folder
        if self._durability != "none":
            with self.partition.active(head.segment) as fd:
                disk.sync(fd)
        for base in self.partition.segments():
            if base > head.segment:  # of a writer that died before it published it
                segment_path(folder, base).unlink()
        path = segment_path(folder, head.end_offset)
        index_path(path).unlink(missing_ok=True)
        os.close(create_file(path, os.O_TRUNC))
        if self._durability != "none":
            disk.sync_folder(folder)
        fresh = head._replace(segment=head.end_offset, position=0, created_ms=0, max_timestamp=NO_TIME, synced=0)
        self.partition.publish(fresh)
        return self._checked_end(fresh)

    @contextmanager
    def _reopening(self, action: str) -> Iterator[None]:
        # After a failed write or sync, the kernel may drop pages that it reports as clean. So the file is opened again,
        # the next append cuts unpublished bytes, and nothing is retried.
        try:
            yield
        except OSError as error:
            self.partition.close_active(self._segment)
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            advice = "The disk is full: free some space. " if is_full else ""
            raise LogError(
                f"Could not {action} {self.partition.folder}: {error.strerror}. {advice}Nothing was appended."
            ) from error

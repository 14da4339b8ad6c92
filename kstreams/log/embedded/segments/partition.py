"""`Partition`: the folder of one topic partition, with its segments, its head, and the lock of its appenders.

The head is a small file with the end of the log, rewritten after every append. Readers trust the head: frames before
the end must be valid, bytes after it are not yet published. A writer that dies after it has written a frame and before
it writes the head leaves bytes that the next writer cuts. The head is trusted only in the boot of the machine in which
it was written: after a power failure, it may be ahead of the frames.

A lost or untrusted head is recovered by reading the last segment. Bytes after its last valid frame are the torn end of
a write that was never acknowledged, and are cut. A damaged frame before a valid one is no torn end: it stays, and
reading it raises CorruptLogError.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import google_crc32c

from kstreams.errors import CorruptLogError, LogError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.embedded.disk import Disk, boot_id, create_file, open_file
from kstreams.log.embedded.segments.index import NO_TIME, index_path
from kstreams.log.embedded.segments.segment import SUFFIX, Segment, segment_path
from kstreams.os.file_lock import try_lock
from kstreams.os.open_files import POOL, OpenFile, PinnedFile, retry_open
from kstreams.os.private import make_folder
from kstreams.os.stopped_holders import WAITS

START_SUFFIX = ".start"
_logger = logging.getLogger("kstreams.log")
_MAGIC = b"KSLH"
_VERSION = 1
_LAYOUT = struct.Struct("<4sI16sqqqqqqq4xI")
HEAD_SIZE = _LAYOUT.size
_TORN_READS = 100  # a read may see half of a write, which takes microseconds


class ValidEnd(NamedTuple):
    """The end of the valid part of a segment."""

    position: int
    offset: int
    max_timestamp: int


def recover(folder: Path, source: TopicPartition, disk: Disk, stale: PartitionHead | None) -> PartitionHead:
    """Return the head as it follows from the files, and cut a torn end; the caller must hold the partition's lock.

    Parameters
    ----------
    stale : PartitionHead or None
        The head of an earlier boot, if it exists: invalid bytes that were synced then are damage, not a torn end.
    """
    start = marked_start(folder)
    bases = _drop_empty_tail(folder, sorted(int(path.stem) for path in folder.glob(f"*{SUFFIX}")))
    if not bases:
        os.close(create_file(segment_path(folder, start)))
        bases = [start]
    path = segment_path(folder, bases[-1])
    stale_head = stale if stale is not None and stale.segment == bases[-1] else None
    end = valid_end(path, source)
    size = path.stat().st_size
    if stale_head is not None and end.position < stale_head.synced <= size:
        _logger.error(
            "%s: bytes that were synced before byte %d of %s are damaged after byte %d",
            source,
            stale_head.synced,
            path,
            end.position,
        )
        end = ValidEnd(stale_head.position, stale_head.end_offset, stale_head.max_timestamp)
    elif end.position < size:
        _cut(path, disk, end, size)
    created_ms = stale_head.created_ms if stale_head is not None else 0
    return PartitionHead(max(bases[0], start), end.offset, bases[-1], end.position, created_ms, end.max_timestamp)


def valid_end(path: Path, source: TopicPartition) -> ValidEnd:
    """Return the end of the last valid frame of a segment; damage before it is logged, and stays."""
    segment = Segment(path, source)
    segment.map_all()
    end = ValidEnd(0, segment.base_offset, NO_TIME)
    while end.position < segment.limit:
        try:
            end = _next_end(segment, end)
        except CorruptLogError as damage:
            position = segment.find_frame(end.position + 8, end.offset)
            if position is None:
                break
            _logger.error("%s", damage)
            end = ValidEnd(position, segment.header_at(position).base_offset, end.max_timestamp)
    return end


def marked_start(folder: Path) -> int:
    """Return the start that `delete_records` has set; 0 without one."""
    return max((int(path.stem) for path in folder.glob(f"*{START_SUFFIX}")), default=0)


def _next_end(segment: Segment, end: ValidEnd) -> ValidEnd:
    header = segment.checked_header(end.position, end.offset)
    segment.checked_body(end.position, header)
    greatest = max(end.max_timestamp, header.max_timestamp) if header.records else end.max_timestamp
    return ValidEnd(end.position + header.size, header.next_offset, greatest)


def _drop_empty_tail(folder: Path, bases: list[int]) -> list[int]:
    # A writer that dies while it rolls leaves an empty segment after the active one.
    while len(bases) > 1 and segment_path(folder, bases[-1]).stat().st_size == 0:
        segment_path(folder, bases.pop()).unlink()
    return bases


def _cut(path: Path, disk: Disk, end: ValidEnd, size: int) -> None:
    _logger.warning("%s ends in a torn write: %d bytes after offset %d are cut", path, size - end.position, end.offset)
    index_path(path).unlink(missing_ok=True)
    fd = create_file(path)
    try:
        disk.cut(fd, end.position)
        disk.sync(fd)
    finally:
        os.close(fd)


class PartitionHead(NamedTuple):
    """The start and the end of a partition's log."""

    start_offset: int  # records before it are deleted, even if a segment still has them
    end_offset: int  # of the next record to be appended
    segment: int  # base offset of the active segment
    position: int  # bytes of the active segment that are published
    created_ms: int  # time of the first record in the active segment
    max_timestamp: int  # of the records in the active segment
    synced: int = 0  # bytes of the active segment that are known to be on the disk
    boot: bytes = b""


def encode_head(head: PartitionHead) -> bytes:
    """Encode the head file, stamped with this boot."""
    raw = _LAYOUT.pack(_MAGIC, _VERSION, boot_id(), *head[:7], 0)
    return raw[:-4] + int(google_crc32c.value(raw[:-4])).to_bytes(4, "little")


def decode_head(raw: bytes) -> PartitionHead | None:
    """Decode a head; None if the bytes are not valid."""
    if len(raw) != HEAD_SIZE:
        return None
    magic, version, boot, *fields, crc = _LAYOUT.unpack(raw)
    if magic != _MAGIC or version != _VERSION or google_crc32c.value(raw[:-4]) != crc:
        return None
    return PartitionHead(*fields)._replace(boot=boot)


def read_head(fd: int) -> PartitionHead | None:
    """Read the head of an open file; None if it is not valid."""
    for _ in range(_TORN_READS):
        head = decode_head(os.pread(fd, HEAD_SIZE, 0))
        if head is not None:
            return head
    return None


def is_trusted(head: PartitionHead | None) -> bool:
    """Return whether the head was written in this boot."""
    return head is not None and head.boot == boot_id()


_LOCK_PAUSE = 0.001


class PartitionBusyError(LogError):
    """Error when another writer held the partition's lock for the whole timeout."""


def create_partition(folder: Path, disk: Disk) -> None:
    """Create the folder of an empty partition."""
    make_folder(folder)
    os.close(create_file(folder / "lock"))
    os.close(create_file(segment_path(folder, 0)))
    fd = create_file(folder / "head")
    try:
        disk.write_at(fd, [encode_head(EMPTY)], 0)
    finally:
        os.close(fd)
    disk.sync_folder(folder)


EMPTY = PartitionHead(start_offset=0, end_offset=0, segment=0, position=0, created_ms=0, max_timestamp=NO_TIME)


class Partition:
    """An open partition folder, for one user at a time. Users of the same folder exclude each other by its lock.

    The lock file is open while it is held. The head and the active segment are files of the pool, which all users in
    the process share: a partition has no other open files, however many users it has.

    Parameters
    ----------
    folder : Path
    source : TopicPartition
        The partition, for messages and batches.
    disk : Disk

    Raises
    ------
    UnknownTopicError
        When the folder does not exist.
    """

    def __init__(self, folder: Path, source: TopicPartition, disk: Disk) -> None:
        self.folder = folder
        self.source = source
        self.disk = disk
        self._lock = str(folder / "lock")
        self._head = str(folder / "head")
        self._active = (-1, "")
        self._pinned_head: PinnedFile | None = None
        if self.is_deleted():
            raise self._deleted()
        POOL.enter(str(folder))
        self._is_open = True
        self._pinned_head = POOL.pin(self._head, self._open_head)

    def head(self) -> PartitionHead:
        """Return the start and end of the log; after a power failure or damage, the head is recovered first."""
        head = self._read_head()
        if head is None or not is_trusted(head):
            with self.locked():
                return self.head_locked()
        return head

    def head_locked(self) -> PartitionHead:
        """Return the head, for a caller that holds the lock."""
        head = self._read_head()
        if head is None or not is_trusted(head):
            head = recover(self.folder, self.source, self.disk, head)
            self.publish(head)
        return head

    def publish(self, head: PartitionHead) -> None:
        """Let readers see the log up to a head; the caller must hold the lock."""
        with self._pinned_head or POOL.use(self._head, self._open_head) as fd:
            self.disk.write_at(fd, [encode_head(head)], 0)

    @contextmanager
    def locked(self, timeout: float | None = None) -> Iterator[None]:
        """Hold the partition's lock; raises PartitionBusyError after `timeout` seconds, None waits for ever."""
        fd = self._open_lock()
        try:
            self._acquire(fd, timeout)
            if os.fstat(fd).st_nlink == 0:
                raise self._deleted()
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # a child that was forked meanwhile may keep the descriptor
            os.close(fd)

    def is_deleted(self) -> bool:
        """Return whether the topic was deleted, which removes the lock file first, then the head."""
        if self._pinned_head is not None and os.fstat(self._pinned_head.fd).st_nlink:
            return False
        return not os.path.exists(self._lock)

    def active(self, segment: int) -> OpenFile:
        """Return the file of the active segment, for a `with` block."""
        return POOL.use(self._path(segment), _open)

    def close_active(self, segment: int) -> None:
        """Let the next use open the file of a segment again."""
        POOL.discard(self._path(segment))

    def segments(self) -> list[int]:
        """Return the base offsets of all segments, ascending."""
        return segment_bases(self.folder)

    def close(self) -> None:
        """Release the files, which the pool closes unless another user in the process has them open."""
        if self._is_open:
            self._is_open = False
            if self._pinned_head is not None:
                self._pinned_head.unpin()
                self._pinned_head = None
            POOL.leave(str(self.folder))

    def _read_head(self) -> PartitionHead | None:
        with self._pinned_head or POOL.use(self._head, self._open_head) as fd:
            return read_head(fd)

    def _open_head(self, path: str) -> int:
        try:
            return _open(path)
        except FileNotFoundError:
            if self.is_deleted():
                raise self._deleted() from None
            return create_file(Path(path))  # the head is lost, and is recovered from the segments

    def _open_lock(self) -> int:
        # Never created here: deleting a topic removes the lock, which waiting users must notice.
        try:
            return open_file(Path(self._lock), os.O_RDWR)
        except FileNotFoundError:
            raise self._deleted() from None

    def _path(self, segment: int) -> str:
        if self._active[0] != segment:
            self._active = segment, str(segment_path(self.folder, segment))
        return self._active[1]

    def _deleted(self) -> UnknownTopicError:
        return UnknownTopicError(f"{self.source} was deleted: there is no lock in {self.folder}.")

    def _acquire(self, fd: int, timeout: float | None) -> None:
        if try_lock(fd):
            return
        with WAITS.waiting(self._lock):
            self._wait_for(fd, timeout)

    def _wait_for(self, fd: int, timeout: float | None) -> None:
        if timeout is None:
            fcntl.flock(fd, fcntl.LOCK_EX)
            return
        # Real time, not the log's clock: another process holds the lock.
        deadline = time.monotonic() + timeout
        while not try_lock(fd):
            if time.monotonic() >= deadline:
                raise PartitionBusyError(f"Another writer has held {self.source} for {timeout} s: try again later.")
            time.sleep(_LOCK_PAUSE)


def _open(path: str) -> int:
    return open_file(Path(path), os.O_RDWR)


def segment_bases(folder: Path) -> list[int]:
    """Return the base offsets of the segments in a folder, ascending."""
    names = retry_open(lambda: os.listdir(folder))
    return sorted(int(name[: -len(SUFFIX)]) for name in names if name.endswith(SUFFIX))

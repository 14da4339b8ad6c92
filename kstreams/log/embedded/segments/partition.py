"""The folder of one topic partition: its segments, the head that says where they end, the lock of those who append."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.embedded.disk import Disk, create_file, open_file
from kstreams.log.embedded.segments.head import PartitionHead, encode_head, is_trusted, read_head, recover
from kstreams.log.embedded.segments.index import NO_TIME
from kstreams.log.embedded.segments.segment import SUFFIX, segment_path
from kstreams.os.file_lock import try_lock
from kstreams.os.open_files import POOL, OpenFile, PinnedFile, opened
from kstreams.os.private import make_folder

_LOCK_PAUSE = 0.001


class PartitionBusyError(LogError):
    """Another writer held the partition's lock for longer than we may wait."""


def create_partition(folder: Path, disk: Disk) -> None:
    """Make the folder of a new and empty partition."""
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
    """An open partition folder. One user at a time; several of them on one folder exclude each other by its lock.

    The lock is open while it is held. The head and the segment that is appended to are files of the pool, which all
    users in the process share: more is not open of a partition, however many read and write it.

    Parameters
    ----------
    folder : Path
    source : TopicPartition
        What it holds, for messages and batches.
    disk : Disk

    Raises
    ------
    UnknownTopicError
        When the folder is not there.
    """

    def __init__(self, folder: Path, source: TopicPartition, disk: Disk) -> None:
        self.folder = folder
        self.source = source
        self.disk = disk
        self._lock = str(folder / "lock")
        self._head = str(folder / "head")
        self._active = (-1, "")
        self._kept: PinnedFile | None = None
        if self.is_deleted():
            raise self._deleted()
        POOL.enter(str(folder))
        self._is_open = True
        self._kept = POOL.keep(self._head, self._open_head)

    def head(self) -> PartitionHead:
        """Where the log starts and ends now; after a power failure or damage to the head this finds it out again."""
        head = self._read_head()
        if head is None or not is_trusted(head):
            with self.locked():
                return self.head_locked()
        return head

    def head_locked(self) -> PartitionHead:
        """The same for whoever holds the lock."""
        head = self._read_head()
        if head is None or not is_trusted(head):
            head = recover(self.folder, self.source, self.disk, head)
            self.publish(head)
        return head

    def publish(self, head: PartitionHead) -> None:
        """Let readers see the log up to this head; only under the lock."""
        with self._kept or POOL.use(self._head, self._open_head) as fd:
            self.disk.write_at(fd, [encode_head(head)], 0)

    @contextmanager
    def locked(self, timeout: float | None = None) -> Iterator[None]:
        """Hold the partition's lock; PartitionBusyError after `timeout` seconds, None waits for ever."""
        fd = self._open_lock()
        try:
            self._acquire(fd, timeout)
            if os.fstat(fd).st_nlink == 0:
                raise self._deleted()
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # a process that was forked meanwhile may keep the descriptor
            os.close(fd)

    def is_deleted(self) -> bool:
        """Whether the topic was deleted: its lock goes first, then its head."""
        if self._kept is not None and os.fstat(self._kept.fd).st_nlink:
            return False
        return not os.path.exists(self._lock)

    def active(self, segment: int) -> OpenFile:
        """The file of the segment that is appended to, for a `with` block."""
        return POOL.use(self._path(segment), _open)

    def close_active(self, segment: int) -> None:
        """Let the next use open that file anew."""
        POOL.forget(self._path(segment))

    def segments(self) -> list[int]:
        """Base offsets of the segments there are, ascending."""
        return segment_bases(self.folder)

    def close(self) -> None:
        """Release the files, unless somebody else in the process uses them."""
        if self._is_open:
            self._is_open = False
            if self._kept is not None:
                self._kept.unpin()
                self._kept = None
            POOL.leave(str(self.folder))

    def _read_head(self) -> PartitionHead | None:
        with self._kept or POOL.use(self._head, self._open_head) as fd:
            return read_head(fd)

    def _open_head(self, path: str) -> int:
        try:
            return _open(path)
        except FileNotFoundError:
            if self.is_deleted():
                raise self._deleted() from None
            return create_file(Path(path))  # it is lost: what the segments say goes into a new one

    def _open_lock(self) -> int:
        # Never made here: a topic is deleted by removing the lock, and who waits for it must notice.
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
        if timeout is None:
            fcntl.flock(fd, fcntl.LOCK_EX)
            return
        # The wait is real time by nature: another process holds the lock.
        deadline = time.monotonic() + timeout
        while not try_lock(fd):
            if time.monotonic() >= deadline:
                raise PartitionBusyError(f"Another writer has held {self.source} for {timeout} s: try again later.")
            time.sleep(_LOCK_PAUSE)


def _open(path: str) -> int:
    return open_file(Path(path), os.O_RDWR)


def segment_bases(folder: Path) -> list[int]:
    """Base offsets of the segments in a folder, ascending."""
    names = opened(lambda: os.listdir(folder))
    return sorted(int(name[: -len(SUFFIX)]) for name in names if name.endswith(SUFFIX))

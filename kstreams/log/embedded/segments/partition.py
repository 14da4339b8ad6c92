"""`Partition`: the folder of one topic partition, with its segments, its head, and the lock of its appenders."""

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
        self._pinned_head = POOL.keep(self._head, self._open_head)

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
        POOL.forget(self._path(segment))

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
    names = opened(lambda: os.listdir(folder))
    return sorted(int(name[: -len(SUFFIX)]) for name in names if name.endswith(SUFFIX))

"""The folder of one topic partition: its segments, the head that says where they end, the lock of those who append."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kstreams.batch import TopicPartition
from kstreams.errors import LogError, UnknownTopicError
from kstreams.log.embedded.disk import Disk, create_file, create_folder
from kstreams.log.embedded.head import Head, encode_head, is_trusted, read_head
from kstreams.log.embedded.index import NO_TIME
from kstreams.log.embedded.recovery import recover
from kstreams.log.embedded.segment import SUFFIX, segment_path

_LOCK_PAUSE = 0.001


class PartitionBusyError(LogError):
    """Another writer held the partition's lock for longer than we may wait."""


def create_partition(folder: Path, disk: Disk) -> None:
    """Make the folder of a new and empty partition."""
    create_folder(folder)
    os.close(create_file(folder / "lock"))
    os.close(create_file(segment_path(folder, 0)))
    fd = create_file(folder / "head")
    try:
        disk.write_at(fd, [encode_head(EMPTY)], 0)
    finally:
        os.close(fd)
    disk.sync_folder(folder)


EMPTY = Head(start_offset=0, end_offset=0, segment=0, position=0, created_ms=0, max_timestamp=NO_TIME)


class Partition:
    """An open partition folder. One user at a time; several of them on one folder exclude each other by its lock.

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
        self.folder, self.source, self.disk = folder, source, disk
        self._lock, self._head = _open_lock(folder, source), create_file(folder / "head")

    def head(self) -> Head:
        """Where the log starts and ends now; after a power failure or damage to the head this finds it out again."""
        head = read_head(self._head)
        if head is None or not is_trusted(head):
            with self.locked():
                return self.head_locked()
        return head

    def head_locked(self) -> Head:
        """The same for whoever holds the lock."""
        head = read_head(self._head)
        if head is None or not is_trusted(head):
            head = recover(self.folder, self.source, self.disk, head)
            self.publish(head)
        return head

    def publish(self, head: Head) -> None:
        """Let readers see the log up to this head; only under the lock."""
        self.disk.write_at(self._head, [encode_head(head)], 0)

    @contextmanager
    def locked(self, timeout: float | None = None) -> Iterator[None]:
        """Hold the partition's lock; PartitionBusyError after `timeout` seconds, None waits for ever."""
        try:
            self._acquire(timeout)
            if self.is_deleted():
                raise UnknownTopicError(f"{self.source} was deleted.")
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def is_deleted(self) -> bool:
        """Whether the topic was deleted since this was opened."""
        return os.fstat(self._lock).st_nlink == 0

    def segments(self) -> list[int]:
        """Base offsets of the segments there are, ascending."""
        return segment_bases(self.folder)

    def close(self) -> None:
        """Release the files."""
        for fd in (self._lock, self._head):
            if fd >= 0:
                os.close(fd)
        self._lock = self._head = -1

    def _acquire(self, timeout: float | None) -> None:
        if timeout is None:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            return
        # The wait is real time by nature: another process holds the lock.
        deadline = time.monotonic() + timeout
        while not self._try_lock():
            if time.monotonic() >= deadline:
                raise PartitionBusyError(f"Another writer has held {self.source} for {timeout} s: try again later.")
            time.sleep(_LOCK_PAUSE)

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _open_lock(folder: Path, source: TopicPartition) -> int:
    # Never made here: a topic is deleted by removing the lock, and who waits for it must notice.
    try:
        return os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise UnknownTopicError(f"{source} has no lock in {folder}: the topic was deleted.") from None


def segment_bases(folder: Path) -> list[int]:
    """Base offsets of the segments in a folder, ascending."""
    names = os.listdir(folder)
    return sorted(int(name[: -len(SUFFIX)]) for name in names if name.endswith(SUFFIX))

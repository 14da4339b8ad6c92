"""Files of the log: the operations that write, which tests replace by a failing disk, and the lock of the folder."""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kstreams.errors import LogError
from kstreams.os.file_lock import try_lock
from kstreams.os.forks import in_child
from kstreams.os.open_files import retry_open
from kstreams.os.stopped_holders import lock


class Disk:
    """The write calls of the operating system; every method raises OSError as the system does."""

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        """Write all parts consecutively at `position`; a short write is continued, so that ENOSPC is raised."""
        views = [memoryview(part) for part in parts]
        while views:
            written = os.pwritev(fd, views, position)
            position += written
            while views and written >= len(views[0]):
                written -= len(views.pop(0))
            if written:
                views[0] = views[0][written:]

    def sync(self, fd: int) -> None:
        """Make the file's data durable."""
        os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)

    def cut(self, fd: int, size: int) -> None:
        """Shorten the file to `size` bytes."""
        os.ftruncate(fd, size)

    def replace(self, source: Path, target: Path) -> None:
        """Rename `source` to `target`, replacing it; durable after `sync_folder`."""
        os.replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


class FolderLock:
    """The lock of a log's folder, which all processes that have the log open share.

    It is held from the opening of the log to `close`, or to the end of the process.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._lock = folder / "lock"
        self._folder = -1
        in_child(self, FolderLock.close)
        self._folder = retry_open(lambda: os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    @contextmanager
    def opening(self) -> Iterator[bool]:
        """Open the log while no other process does; yields whether no other process has it open."""
        fd = create_file(self._lock)
        try:
            lock(fd, self._lock)
            yield try_lock(self._folder)
            fcntl.flock(self._folder, fcntl.LOCK_SH)  # free: only a process that opens the log locks it alone
        except BaseException:
            self.close()
            raise
        finally:
            os.close(fd)

    def close(self) -> None:
        """Release it."""
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = -1

    def __del__(self) -> None:
        self.close()


@functools.cache
def boot_id() -> bytes:
    """Return 16 bytes that change with every boot of the machine; zeros if the system does not tell them."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)


def create_file(path: Path, flags: int = 0) -> int:
    """Open a file for reading and writing, created with mode 0600 if it does not exist; see `open_file`."""
    return open_file(path, os.O_RDWR | os.O_CREAT | flags)


def open_file(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file of a log.

    Raises
    ------
    LogError
        For a symbolic link, or another kind of file with its name.
    TooManyFilesError
        When the process may not open more files.
    """
    try:
        fd = retry_open(lambda: os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600))
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise not_ours(path, "a symbolic link") from None
        if error.errno in (errno.EISDIR, errno.ENXIO):
            raise not_ours(path, "no plain file") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise not_ours(path, "no plain file")
    return fd


def refuse_links(*paths: Path) -> None:
    """Raise LogError if one of these files and folders is a symbolic link."""
    for path in paths:
        if path.is_symlink():
            raise not_ours(path, "a symbolic link")


def not_ours(path: Path, kind: str) -> LogError:
    """Return the error for a link or another kind of file in place of a file or folder of a log."""
    return LogError(f"{path} is {kind}, which no log writes: put the file or folder itself there.")

"""`FileLock`: a lock on a file that one process holds, or several that share it. Freed when its holder dies."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

from kstreams.errors import StateError
from kstreams.os.forks import in_child
from kstreams.os.open_files import opened
from kstreams.os.private import make_private, private_file, private_folder


def try_lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file, unless another holder keeps it from being locked; return whether it is locked now."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class FileLock:
    """A locked file that holds the id of its process.

    The lock is held until `release`, or as long as the object is referred to; usable as a context manager. A forked
    child does not hold it.

    Parameters
    ----------
    path : Path
        Made with its folder if it does not exist, for its owner alone.
    resource : str
        What the lock protects, for messages.
    shared : bool
        Whether other processes may hold the lock, if they share it too.
    advice : str
        What to do about another holder, for the message.

    Raises
    ------
    StateError
        When another holder has locked the file; names its process. Or when the file cannot be opened: then the error
        has a cause.
    """

    def __init__(
        self, path: Path, resource: str, *, shared: bool = False, advice: str = "stop that process first."
    ) -> None:
        try:
            private_folder(path.parent)
            file = opened(lambda: private_file(path))
        except OSError as error:
            raise StateError(f"{resource} cannot be locked: {error}") from error
        self._close = weakref.finalize(self, os.close, file)
        if not try_lock(file, shared=shared):
            holder = os.read(file, 20).decode(errors="replace").strip() or "unknown"
            self.release()
            own = " (this one)" if holder == str(os.getpid()) else ""
            raise StateError(f"{resource} is in use by process {holder}{own}: {advice}")
        in_child(self, FileLock.release)
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())

    def release(self) -> None:
        """Free the lock."""
        self._close()

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def lock_directory(directory: Path) -> FileLock:
    """Lock the directory of a task, for one opener in this process or any other.

    Raises
    ------
    StateError
        When another opener holds it, or the directory cannot be written.
    """
    advice = "stop that process, or give this one another state.dir or application.id"
    lock = FileLock(directory / ".lock", f"state directory {directory}", advice=advice)
    try:
        make_private(directory)  # RocksDB's files follow the umask, and a killed process has left them as they were
    except OSError as error:
        lock.release()
        raise StateError(f"state directory {directory} cannot be used: {error}") from error
    return lock

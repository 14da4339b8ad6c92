"""`FileLock`: an exclusive or shared lock on a file. The death of a process releases its lock."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

from kstreams.errors import StateError
from kstreams.os.forks import in_child
from kstreams.os.open_files import retry_open
from kstreams.os.private import make_private, private_file, private_folder


def try_lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file. Return False if another holder prevents it."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class FileLock:
    """A locked file that holds the id of its process.

    The lock is held until `release`, or until the object is garbage. Usable as a context manager. A forked child does
    not hold the lock.

    Parameters
    ----------
    path : Path
        The file, which is created with its folder if it does not exist. Only its owner may read it.
    resource : str
        The name of the locked resource, for messages.
    shared : bool
        True for a shared lock, which several processes may hold.
    advice : str
        The end of the message about another holder: what the user can do.

    Raises
    ------
    StateError
        If another process has locked the file, which the message names, or the file cannot be opened. In the second
        case, the error has a cause.
    """

    def __init__(
        self, path: Path, resource: str, *, shared: bool = False, advice: str = "stop that process first."
    ) -> None:
        try:
            private_folder(path.parent)
            file = retry_open(lambda: private_file(path))
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
        """Release the lock."""
        self._close()

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def lock_directory(directory: Path) -> FileLock:
    """Lock the directory of a task against other openers in this process and in others.

    Raises
    ------
    StateError
        If another opener holds the lock, or the directory cannot be written.
    """
    advice = "stop that process, or give this one another state.dir or application.id"
    lock = FileLock(directory / ".lock", f"state directory {directory}", advice=advice)
    try:
        make_private(directory)  # RocksDB creates files by the umask, and a killed process has not corrected them
    except OSError as error:
        lock.release()
        raise StateError(f"state directory {directory} cannot be used: {error}") from error
    return lock

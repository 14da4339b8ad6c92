"""`ProcessLock`: what only one process may use at a time, or several that share it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from kstreams.errors import StateError
from kstreams.os.forks import in_child
from kstreams.os.open_files import opened
from kstreams.os.private import private_file, private_folder


class ProcessLock:
    """A lock on a file, which the system frees when its holder dies; usable as a context manager.

    Parameters
    ----------
    path : Path
        Made with its folders if it is not there.
    what : str
        What it protects, for the message.
    shared : bool
        Whether others may hold it that share it too.

    Raises
    ------
    StateError
        When another process holds it; names that process.
    """

    def __init__(self, path: Path, what: str, *, shared: bool = False) -> None:
        try:
            private_folder(path.parent)
            self._file = opened(lambda: private_file(path))
        except OSError as error:
            raise StateError(f"{what} cannot be locked: {error}") from error
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            own = " (this one)" if holder == str(os.getpid()) else ""
            raise StateError(f"{what} is in use by process {holder}{own}: stop that one first.") from None
        in_child(self, ProcessLock.release)
        os.ftruncate(self._file, 0)
        os.write(self._file, str(os.getpid()).encode())

    def release(self) -> None:
        """Let another process have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> ProcessLock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

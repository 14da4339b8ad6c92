"""`DirectoryLock`: a task's directory belongs to one opener at a time, in this process or any other."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

from kstreams.errors import StateError
from kstreams.os.forks import in_child
from kstreams.os.open_files import opened
from kstreams.os.private import make_private, private_file, private_folder

_NAME = ".lock"


class DirectoryLock:
    """Held from creation to `release`, or as long as it is referred to; a process that dies lets go of it.

    Parameters
    ----------
    directory : Path
        Made, for its owner alone, when it is not there.

    Raises
    ------
    StateError
        When somebody else holds it, or the directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        try:
            private_folder(directory)
            file = opened(lambda: private_file(directory / _NAME))
        except OSError as error:
            raise StateError(f"state directory {directory} cannot be used: {error}") from error
        self._close = weakref.finalize(self, os.close, file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(file, 20).decode(errors="replace").strip() or "unknown"
            self.release()
            raise StateError(
                f"state directory {directory} is in use by process {holder}: stop that one, or give this one another "
                "state.dir or application.id"
            ) from error
        try:
            make_private(directory)  # RocksDB's files follow the umask, and one that was killed closed none
        except OSError as error:
            self.release()
            raise StateError(f"state directory {directory} cannot be used: {error}") from error
        in_child(self, DirectoryLock.release)
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())

    def release(self) -> None:
        """Let go of the directory."""
        self._close()

"""`DirectoryLock`: a task's directory belongs to one opener at a time, in this process or any other."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from kstreams.errors import StateError
from kstreams.open_files import opened
from kstreams.private import make_private, private_file, private_folder

_NAME = ".lock"


class DirectoryLock:
    """Held from creation to `release`; a process that dies lets go of it.

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
            self._file = opened(lambda: private_file(directory / _NAME))
        except OSError as error:
            raise StateError(f"state directory {directory} cannot be used: {error}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._file, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StateError(
                f"state directory {directory} is in use by process {holder}: stop that one, or give this one another "
                "state.dir or application.id"
            ) from error
        try:
            make_private(directory)  # RocksDB's files follow the umask, and one that was killed closed none
        except OSError as error:
            os.close(self._file)
            raise StateError(f"state directory {directory} cannot be used: {error}") from error
        os.ftruncate(self._file, 0)
        os.write(self._file, str(os.getpid()).encode())

    def release(self) -> None:
        """Let go of the directory."""
        os.close(self._file)

"""`FolderLock`: shared by all processes that have a log open; the first and only one learns that it is alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kstreams.log.embedded.disk import create_file
from kstreams.os.forks import in_child
from kstreams.os.open_files import opened


class FolderLock:
    """Held from the opening of a log to `close`, or to the end of the process.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._lock = folder / "lock"
        self._folder = -1
        in_child(self, FolderLock.close)
        self._folder = opened(lambda: os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    @contextmanager
    def opening(self) -> Iterator[bool]:
        """Only one opens at a time; it learns whether nobody else has the log open, and stays present afterwards."""
        fd = create_file(self._lock)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield self._is_alone()
            fcntl.flock(self._folder, fcntl.LOCK_SH)  # free: whoever takes it alone holds the other lock
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

    def _is_alone(self) -> bool:
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

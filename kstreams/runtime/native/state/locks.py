"""One process per application and log, and per state folder: locks that the system frees when their holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.log import home_of
from kstreams.open_files import opened
from kstreams.private import private_file, private_folder


class ProcessLock:
    """An exclusive lock on a file; usable as a context manager.

    Parameters
    ----------
    path : Path
        Made with its folders if it is not there.
    what : str
        What it protects, for the message.

    Raises
    ------
    StateError
        When another process holds it; names that process.
    """

    def __init__(self, path: Path, what: str) -> None:
        try:
            private_folder(path.parent)
            self._file = opened(lambda: private_file(path))
        except OSError as error:
            raise StateError(f"{what} cannot be locked: {error}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StateError(f"{what} is in use by process {holder}: stop that one first.") from None
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


def state_folder(config: Config) -> Path:
    """Where the application keeps its stores."""
    return Path(config["state.dir"]) / config.application_id


def lock_application(config: Config) -> list[ProcessLock]:
    """The locks of a running application: on its id in the log, and on its state folder.

    Raises
    ------
    StateError
        When another process runs the application or uses the folder.
    """
    name = config.application_id
    home = home_of(config)
    wanted = {home.lock_file(name): f"The application {name!r} of the log {home}"}
    wanted[state_folder(config) / ".lock"] = f"The state folder {state_folder(config)}"
    locks: list[ProcessLock] = []
    try:
        for path, what in wanted.items():
            if path is not None:
                locks.append(ProcessLock(path, what))
    except StateError:
        for lock in locks:
            lock.release()
        raise
    return locks

"""Locks on state folders, and on applications that a run may or may not share with other processes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.log import home_of
from kstreams.os.file_lock import FileLock

_LOCK = ".lock"


class ProcessFolder(NamedTuple):
    """The state folder of one process, with its locks."""

    path: Path
    locks: tuple[FileLock, ...]

    def release(self) -> None:
        """Release the locks."""
        for lock in self.locks:
            lock.release()


def state_folder(config: Config) -> Path:
    """Return the state folder of the first process. Those of further processes are `process-2` and so on within it."""
    return Path(config["state.dir"]) / config.application_id


def lock_alone(config: Config) -> ProcessFolder:
    """Lock the application for this process alone, with its first state folder.

    Raises
    ------
    StateError
        If another process runs the application or uses the folder.
    """
    log = _lock_home(config, shared=False)
    folder = state_folder(config)
    try:
        return ProcessFolder(folder, (*log, FileLock(folder / _LOCK, f"The state folder {folder}")))
    except StateError:
        for lock in log:
            lock.release()
        raise


def lock_folder(config: Config) -> ProcessFolder:
    """Lock the first state folder of the application, wherever its topics are. Raises as `lock_alone`."""
    folder = state_folder(config)
    return ProcessFolder(folder, (FileLock(folder / _LOCK, f"The state folder {folder}"),))


def lock_shared(config: Config) -> ProcessFolder:
    """Lock the application together with other processes, with the first state folder that none of them uses.

    Raises
    ------
    StateError
        If a process has locked the application alone.
    """
    log = _lock_home(config, shared=True)
    first = state_folder(config)
    for number in itertools.count(1):
        folder = first if number == 1 else first / f"process-{number}"
        try:
            return ProcessFolder(folder, (*log, FileLock(folder / _LOCK, f"The state folder {folder}")))
        except StateError as error:
            if error.__cause__ is not None:  # it cannot be locked at all
                raise
    raise AssertionError("there is always a next folder")


def _lock_home(config: Config, *, shared: bool) -> list[FileLock]:
    """Lock the application in a home with files on this machine. Other homes have their own locks."""
    home = home_of(config)
    name = config.application_id
    path = home.lock_file(name)
    return [] if path is None else [FileLock(path, f"The application {name!r} of the log {home}", shared=shared)]

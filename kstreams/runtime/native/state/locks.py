"""Which process uses which state folder, and whether a run may share its application with others."""

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
    """The state folder of one process, and the locks that it holds."""

    path: Path
    locks: tuple[FileLock, ...]

    def release(self) -> None:
        """Let others have it."""
        for lock in self.locks:
            lock.release()


def state_folder(config: Config) -> Path:
    """Where the application keeps its stores; those of further processes lie in `process-2` and so on within it."""
    return Path(config["state.dir"]) / config.application_id


def lock_alone(config: Config) -> ProcessFolder:
    """The application for one process alone, with its first state folder.

    Raises
    ------
    StateError
        When another process runs the application or uses the folder.
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
    """The first state folder of the application alone, wherever its topics are; raises as `lock_alone`."""
    folder = state_folder(config)
    return ProcessFolder(folder, (FileLock(folder / _LOCK, f"The state folder {folder}"),))


def lock_shared(config: Config) -> ProcessFolder:
    """The application together with other processes, with the first state folder that none of them uses.

    Raises
    ------
    StateError
        While a process has it alone.
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
    """The lock on the application in a home that keeps files on this machine; others see to that themselves."""
    home = home_of(config)
    name = config.application_id
    path = home.lock_file(name)
    return [] if path is None else [FileLock(path, f"The application {name!r} of the log {home}", shared=shared)]

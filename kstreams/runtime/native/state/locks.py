"""One process per application and log, and per state folder."""

from __future__ import annotations

from pathlib import Path

from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.log import home_of
from kstreams.state.process_lock import ProcessLock


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

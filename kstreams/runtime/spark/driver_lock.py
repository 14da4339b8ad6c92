"""The lock on an application on Spark: drivers share it, what moves its state has it alone."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from kstreams.config import Config
from kstreams.log import home_of
from kstreams.os.file_lock import FileLock


def driver_lock(config: Config, *, shared: bool) -> AbstractContextManager[object]:
    """Drivers share it, of which the log lets the newest commit; while its state is moved, none may start."""
    name = config.application_id
    home = home_of(config)
    path = home.lock_file(f"{name}-spark")
    return FileLock(path, f"The application {name!r} on Spark", shared=shared) if path else nullcontext()

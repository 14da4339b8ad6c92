"""`TaskStateCache`: the open stores of global tables in a Spark worker, which joins read."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kstreams.errors import CorruptStateError
from kstreams.os.open_files import file_limit
from kstreams.runtime.spark.steps import EMPTY, StateVersion
from kstreams.runtime.spark.tasks.local_state import apply
from kstreams.runtime.spark.tasks.state_files import StateFile, StateFiles
from kstreams.state import StateLimits, open_task_state
from kstreams.state.api import StoreBuilder, TaskState

_DATABASE_BYTES = 512 * 1024
"""The least memory of an open RocksDB."""

_DATABASE_FILES = 12
"""The number of files that an open RocksDB keeps open."""


@dataclass
class CachedState:
    """The open stores of one task at one version."""

    state: TaskState
    folder: Path
    has_database: bool
    version: StateVersion = EMPTY
    num_bytes: int = 0

    def measure(self) -> None:
        """Measure the memory of the live values."""
        self.num_bytes = self.state.num_bytes_live()

    def make_room(self) -> None:
        """Evict live values that RocksDB also holds, and measure the memory again."""
        self.state.make_room()
        self.measure()

    def apply(self, files: Sequence[StateFile]) -> None:
        """Apply the changes in the files."""
        for file in files:
            apply(self.state, file)


class TaskStateCache:
    """The states of one worker process.

    Their memory is bounded by `StateLimits.live_max_bytes`. Values that RocksDB also holds are evicted first. Then
    whole states are closed; they are rebuilt from their state files when they are used again.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[str, CachedState] = OrderedDict()
        self._used: set[str] = set()  # the states that were used since they were measured

    def at(
        self,
        name: str,
        files: StateFiles,
        builders: Sequence[StoreBuilder],
        version: StateVersion,
        *,
        caching: bool,
        limits: StateLimits,
    ) -> CachedState:
        """Return the state of a task at a version.

        A cached state of an older version is updated from the state files. If that is impossible, the state is rebuilt.

        Parameters
        ----------
        name : str
            The key in the cache: checkpoint and task.
        files : StateFiles
            The task's state files.
        builders : sequence of StoreBuilder
            The stores of the task.
        version : StateVersion
        caching : bool
            True if the record cache is on.
        limits : StateLimits
            The limits of the stores of the process.
        """
        cached = self._states.get(name)
        if cached is not None and cached.state.stores.keys() != {builder.name for builder in builders}:
            self.drop(name)  # it belongs to another version of the application
            cached = None
        newer = files.since(cached.version, version) if cached is not None else None
        if cached is None or newer is None:
            self.drop(name)
            cached = _opened(builders, caching, limits)
            newer = files.rebuild(version)
            self._states[name] = cached
        try:
            cached.apply(newer)
        except BaseException:
            self.drop(name)
            raise
        cached.version = version
        self._states.move_to_end(name)
        self._used.add(name)
        return cached

    def trim(self, limits: StateLimits) -> None:
        """Close the least recently used states until the others fit into memory. Call this while no task runs.

        The state that was used last stays open, even if it exceeds the limit.
        """
        for name in self._used & self._states.keys():
            self._states[name].measure()
        self._used.clear()
        if not self._fits(limits):
            for entry in self._states.values():
                entry.make_room()
        while len(self._states) > 1 and not self._fits(limits):
            self.drop(next(iter(self._states)))

    def _fits(self, limits: StateLimits) -> bool:
        num_databases = sum(entry.has_database for entry in self._states.values())
        num_bytes = sum(entry.num_bytes for entry in self._states.values())
        return num_bytes <= limits.live_max_bytes and num_databases <= _max_databases(limits)

    def drop(self, name: str) -> None:
        """Close a state and delete its folder, for example if it has applied only a part of a step."""
        cached = self._states.pop(name, None)
        if cached is not None:
            with suppress(CorruptStateError):  # its folder is deleted anyway
                cached.state.close()
            shutil.rmtree(cached.folder, ignore_errors=True)

    def clear(self) -> None:
        """Drop all states."""
        for name in list(self._states):
            self.drop(name)


def _max_databases(limits: StateLimits) -> int:
    """Return how many databases may be open: bounded by the memory of live values and half of the open files."""
    return min(limits.live_max_bytes // _DATABASE_BYTES, file_limit() // 2 // _DATABASE_FILES)


def _opened(builders: Sequence[StoreBuilder], caching: bool, limits: StateLimits) -> CachedState:
    # Spark deletes its local folders when an executor ends. State files act as changelogs, so every store is logged.
    scratch = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0]
    folder = Path(tempfile.mkdtemp(prefix="kstreams-state-", dir=scratch))
    has_database = any(builder.store == "rocksdb" for builder in builders)
    logged = tuple(replace(builder, logging=True) for builder in builders)
    return CachedState(open_task_state(logged, folder, limits=limits, caching=caching), folder, has_database)


STATE_CACHE = TaskStateCache()
"""The states of this process."""

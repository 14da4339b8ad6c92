"""`TaskStateCache`: the states of global tables, which every Spark worker keeps open to look into them."""

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
"""What an open RocksDB takes, however little is in it."""

_DATABASE_FILES = 12
"""How many files it keeps open."""


@dataclass
class CachedState:
    """The open stores of one task at one version."""

    state: TaskState
    folder: Path
    has_database: bool
    version: StateVersion = EMPTY
    num_bytes: int = 0

    def measure(self) -> None:
        """Note how much memory its live values take now."""
        self.num_bytes = self.state.num_bytes_live()

    def make_room(self) -> None:
        """Evict live values that RocksDB holds too, where the states together take too much memory."""
        self.state.make_room()
        self.measure()

    def apply(self, files: Sequence[StateFile]) -> None:
        """Apply the changes in the files."""
        for file in files:
            apply(self.state, file)


class TaskStateCache:
    """The states of one worker process.

    They take as much memory as the live values of stores may take (`StateLimits`). Values that RocksDB holds too are
    evicted first; then whole states are closed, and rebuilt from their files when they are needed again.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, CachedState] = OrderedDict()
        self._used: set[str] = set()  # since they were measured

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
        """The state of a task at a version: the one kept, caught up if it is behind, else rebuilt from the files.

        Parameters
        ----------
        name : str
            Names checkpoint and task.
        files : StateFiles
            The task's files.
        builders : sequence of StoreBuilder
            Its stores.
        version : StateVersion
            Which state is wanted.
        caching : bool
            Whether the record cache is on.
        limits : StateLimits
            Ceilings for the stores of the process.
        """
        cached = self._kept.get(name)
        if cached is not None and cached.state.stores.keys() != {builder.name for builder in builders}:
            self.drop(name)  # of another version of the application
            cached = None
        newer = files.since(cached.version, version) if cached is not None else None
        if cached is None or newer is None:
            self.drop(name)
            cached = _opened(builders, caching, limits)
            newer = files.rebuild(version)
            self._kept[name] = cached
        try:
            cached.apply(newer)
        except BaseException:
            self.drop(name)
            raise
        cached.version = version
        self._kept.move_to_end(name)
        self._used.add(name)
        return cached

    def trim(self, limits: StateLimits) -> None:
        """Close the states used longest ago until the others fit into memory; called when no task is running.

        The state that was used last stays, however much it takes.
        """
        for name in self._used & self._kept.keys():
            self._kept[name].measure()
        self._used.clear()
        if not self._fits(limits):
            for entry in self._kept.values():
                entry.make_room()
        while len(self._kept) > 1 and not self._fits(limits):
            self.drop(next(iter(self._kept)))

    def _fits(self, limits: StateLimits) -> bool:
        databases = sum(entry.has_database for entry in self._kept.values())
        num_bytes = sum(entry.num_bytes for entry in self._kept.values())
        return num_bytes <= limits.live_max_bytes and databases <= _most_databases(limits)

    def drop(self, name: str) -> None:
        """Forget a state that holds half a step, or another history."""
        cached = self._kept.pop(name, None)
        if cached is not None:
            with suppress(CorruptStateError):  # nothing of it is kept
                cached.state.close()
            shutil.rmtree(cached.folder, ignore_errors=True)

    def clear(self) -> None:
        """Forget all of them."""
        for name in list(self._kept):
            self.drop(name)


def _most_databases(limits: StateLimits) -> int:
    """How many may be open: they take no more than live values may, and half of the files of the process."""
    return min(limits.live_max_bytes // _DATABASE_BYTES, file_limit() // 2 // _DATABASE_FILES)


def _opened(builders: Sequence[StoreBuilder], caching: bool, limits: StateLimits) -> CachedState:
    # Spark empties its local folders when an executor ends. Here every store is logged: the files are its changelog.
    scratch = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0]
    folder = Path(tempfile.mkdtemp(prefix="kstreams-state-", dir=scratch))
    has_database = any(builder.store == "rocksdb" for builder in builders)
    logged = tuple(replace(builder, logging=True) for builder in builders)
    return CachedState(open_task_state(logged, folder, limits=limits, caching=caching), folder, has_database)


STATE_CACHE = TaskStateCache()
"""The states of this process."""

"""`TaskStateCache`: the task states that a Spark worker keeps open between steps, so as not to rebuild them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kstreams.batch import Batch, TopicPartition
from kstreams.errors import CorruptStateError
from kstreams.runtime.spark.tasks.state_files import EMPTY, StateFile, StateFiles, StateVersion, TaskMetadata
from kstreams.state import open_task_state
from kstreams.state.api import StoreBuilder, TaskState

MOST = 32
"""Live states that one worker keeps; the one used longest ago goes first."""


@dataclass
class CachedState:
    """The open stores of one task at one version."""

    state: TaskState
    folder: Path
    version: StateVersion = EMPTY
    memo: TaskMetadata | None = None
    since_snapshot: int = 0

    def apply(self, files: Sequence[StateFile]) -> None:
        """Move on by what the files hold."""
        for file in files:
            for store in file.stores.keys() & self.state.stores.keys():  # the topology may have lost some since
                changes = file.stores[store]
                offsets = np.full(len(changes), file.version.number, dtype=np.int64)
                source = TopicPartition(store, 0)
                self.state.restore(store, Batch(source, offsets, changes.keys, changes.values, changes.timestamps))
            self.memo = file.memo


class TaskStateCache:
    """The states of one worker process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, CachedState] = OrderedDict()

    def at(
        self, name: str, files: StateFiles, builders: Sequence[StoreBuilder], version: StateVersion, *, caching: bool
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
        """
        live = self._kept.get(name)
        if live is not None and live.state.stores.keys() != {builder.name for builder in builders}:
            self.drop(name)  # of another version of the application
            live = None
        newer = files.since(live.version, version) if live is not None else None
        if live is None or newer is None:
            self.drop(name)
            live, newer = _opened(builders, caching), files.rebuild(version)
            self._kept[name] = live
        try:
            live.apply(newer)
        except BaseException:
            self.drop(name)
            raise
        live.version = version
        self._kept.move_to_end(name)
        self._keep_within_bounds()
        return live

    def drop(self, name: str) -> None:
        """Forget a state that holds half a step, or another history."""
        live = self._kept.pop(name, None)
        if live is not None:
            with suppress(CorruptStateError):  # nothing of it is kept
                live.state.close()
            shutil.rmtree(live.folder, ignore_errors=True)

    def clear(self) -> None:
        """Forget all of them."""
        for name in list(self._kept):
            self.drop(name)

    def _keep_within_bounds(self) -> None:
        while len(self._kept) > MOST:
            self.drop(next(iter(self._kept)))


def _opened(builders: Sequence[StoreBuilder], caching: bool) -> CachedState:
    # Spark empties its local folders when an executor ends. Here every store is logged: the files are its changelog.
    scratch = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0]
    folder = Path(tempfile.mkdtemp(prefix="kstreams-state-", dir=scratch))
    logged = tuple(replace(builder, logging=True) for builder in builders)
    return CachedState(open_task_state(logged, folder, caching=caching), folder)


STATE_CACHE = TaskStateCache()
"""The states of this process."""

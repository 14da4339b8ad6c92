"""`opened_state`: opens the stores of a task on the disk of its executor, which stay there between steps.

The stores hold the state after a committed step. The changes of a step are applied only when the next step runs, which
shows that the step was committed. A file in the folder records the version of closed stores. It is deleted before the
stores are opened and written after they are closed. After a crash the file is missing, and the stores are rebuilt.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kstreams.errors import StateError
from kstreams.runtime.spark.steps import EMPTY, StateVersion
from kstreams.runtime.spark.tasks.state_files import StateFile, StateFiles, TaskMetadata
from kstreams.runtime.spark.tasks.task_folder import StoredVersion, TaskFolder
from kstreams.state import StateLimits, open_task_state
from kstreams.state.api import StoreBuilder, TaskState
from kstreams.state.task_state import observe_times

logger = logging.getLogger(__name__)


class OpenedState(NamedTuple):
    """The open stores of a task, and the task metadata of their version."""

    stores: TaskState
    metadata: TaskMetadata


@contextmanager
def opened_state(
    path: Path,
    files: StateFiles,
    builders: Sequence[StoreBuilder],
    version: StateVersion,
    *,
    caching: bool,
    limits: StateLimits,
) -> Iterator[OpenedState]:
    """Open the stores of a task at a version for the block. Changes that the block makes to them are not persisted.

    Parameters
    ----------
    path : Path
        The task's folder on this machine.
    files : StateFiles
        The task's state files, which supply the changes that the folder lacks.
    builders : sequence of StoreBuilder
        The stores of the task.
    version : StateVersion
    caching : bool
        True if the record cache is on.
    limits : StateLimits

    Raises
    ------
    CorruptStateError
        If the stores in the folder are damaged; the next call rebuilds them.
    StateError
        If the disk of this machine is full, or the state files do not contain the version.
    """
    if not builders:
        yield OpenedState(open_task_state(()), files.metadata_at(version))
        return
    with ExitStack() as resources:
        folder = resources.enter_context(_folder(path))
        stored = folder.pop_version(builders)
        newer = files.since(stored.version, version) if stored is not None else None
        if stored is None or newer is None:
            folder.clear()
            stored = StoredVersion(EMPTY)
            newer = files.rebuild(version)
        logged = [replace(builder, logging=True) for builder in builders]
        stores = open_task_state(logged, folder.stores, limits=limits, caching=caching, keep_all=True)
        resources.callback(stores.close)
        metadata = _apply_all(stores, newer, stored.metadata)
        yield OpenedState(stores, metadata)
        stores.close()
        folder.write_version(builders, StoredVersion(version, metadata))


@contextmanager
def _folder(path: Path) -> Iterator[TaskFolder]:
    """Open the task's folder, or a temporary one if an attempt that Spark has abandoned still holds its lock."""
    temporary = path.with_name(f"{path.name}-{os.getpid()}")
    with ExitStack() as resources:
        try:
            folder = TaskFolder(path)
        except StateError as busy:
            folder = TaskFolder(temporary)
            logger.warning("%s. The state is rebuilt in another folder for this step", busy)
            resources.callback(shutil.rmtree, temporary, ignore_errors=True)
        yield resources.enter_context(folder)


def _apply_all(stores: TaskState, files: Iterable[StateFile], metadata: TaskMetadata) -> TaskMetadata:
    """Apply the changes in state files, oldest first, and return the task metadata of the last file."""
    number = None
    for file in files:
        metadata = file.metadata
        number = file.version.number
        apply(stores, file)
    observe_times(stores, metadata)
    if number is not None:
        stores.persist({}, dict.fromkeys(stores.stores, number + 1))
    return metadata


def apply(stores: TaskState, file: StateFile) -> None:
    """Apply the changes in a state file."""
    for store in file.stores.keys() & stores.stores.keys():  # a later topology may have fewer stores
        stores.restore_changes(store, file.stores[store], file.version.number + 1)

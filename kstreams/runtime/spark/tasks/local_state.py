"""`opened_state`: opens the stores of a task on the disk of its executor, which stay there between steps.

The stores hold the state after a committed step. The changes of a step are applied only when the next step runs, which
shows that the step was committed. A note in the folder names the version of closed stores. It is deleted before the
stores are opened and written after they are closed. After a crash there is no note, and the stores are rebuilt.
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
from kstreams.runtime.spark.tasks.task_folder import FolderNote, TaskFolder
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
    place: Path,
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
    place : Path
        The task's folder on this machine.
    files : StateFiles
        The task's state files, from which changes that the folder lacks are read.
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
        folder = resources.enter_context(_folder(place))
        noted_version = folder.take_note(builders)
        newer = files.since(noted_version.version, version) if noted_version is not None else None
        if noted_version is None or newer is None:
            folder.empty()
            noted_version = FolderNote(EMPTY)
            newer = files.rebuild(version)
        logged = [replace(builder, logging=True) for builder in builders]
        stores = open_task_state(logged, folder.stores, limits=limits, caching=caching, keep_all=True)
        resources.callback(stores.close)
        metadata = _caught_up(stores, newer, noted_version.metadata)
        yield OpenedState(stores, metadata)
        stores.close()
        folder.leave_note(builders, FolderNote(version, metadata))


@contextmanager
def _folder(place: Path) -> Iterator[TaskFolder]:
    """Open the task's folder, or a temporary one if an attempt that Spark has abandoned still holds its lock."""
    own = place.with_name(f"{place.name}-{os.getpid()}")
    with ExitStack() as resources:
        try:
            folder = TaskFolder(place)
        except StateError as busy:
            folder = TaskFolder(own)
            logger.warning("%s. The state is rebuilt in another folder for this step", busy)
            resources.callback(shutil.rmtree, own, ignore_errors=True)
        yield resources.enter_context(folder)


def _caught_up(stores: TaskState, files: Iterable[StateFile], metadata: TaskMetadata) -> TaskMetadata:
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

"""The stores of a task on the disk of its executor: they stay there between steps, whichever worker gets the task.

What lies there is always a state that a step has left and another went on from: what a step changes comes in when the
next one shows, by going on from it, that it counted. A note names the version while nobody has the stores open. It goes
before they are opened and comes back when they are closed: after a crash there is none, and they are made anew.
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
    """The open stores of a task, and the task metadata that were kept with them."""

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
    """The stores of a task at a version, open while the block lasts; what it changes in them is not kept.

    Parameters
    ----------
    place : Path
        The task's folder on this machine.
    files : StateFiles
        The task's files: what the folder lacks comes from them.
    builders : sequence of StoreBuilder
        Its stores.
    version : StateVersion
    caching : bool
        Whether the record cache is on.
    limits : StateLimits

    Raises
    ------
    CorruptStateError
        When what lies in the folder is damaged; the next call makes it anew.
    StateError
        When the disk of this machine is full, or the files do not give the version.
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
    """The task's folder; another one for this time where an attempt that Spark has given up still holds it."""
    own = place.with_name(f"{place.name}-{os.getpid()}")
    with ExitStack() as resources:
        try:
            folder = TaskFolder(place)
        except StateError as busy:
            folder = TaskFolder(own)
            logger.warning("%s. The state is made anew for this step", busy)
            resources.callback(shutil.rmtree, own, ignore_errors=True)
        yield resources.enter_context(folder)


def _caught_up(stores: TaskState, files: Iterable[StateFile], metadata: TaskMetadata) -> TaskMetadata:
    """Apply the changes in state files, oldest first; the task metadata of the last one."""
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
    for store in file.stores.keys() & stores.stores.keys():  # the topology may have lost some since
        stores.restore_changes(store, file.stores[store], file.version.number + 1)

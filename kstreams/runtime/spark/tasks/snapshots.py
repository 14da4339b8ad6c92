"""`Snapshots`: writes snapshots of states in a background thread of the worker, while the next tasks run.

A snapshot is due when the changes since the last snapshot are larger than that snapshot. So snapshots write about as
many bytes as changes do, and rebuilding a state reads at most about twice its size.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from kstreams.errors import StateError
from kstreams.runtime.spark.steps import StateVersion
from kstreams.runtime.spark.tasks.state_files import StateFile, StateFiles
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.task_state import merged

logger = logging.getLogger(__name__)

_MAX_FILES = 200
"""The number of files after which a snapshot is due even if they are small, since a rebuild reads each of them."""


class Snapshots:
    """The snapshots of one worker, written one after the other."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "kstreams-snapshots")
        self._last: dict[str, Future[None]] = {}  # the last snapshot of each task

    def offer(self, files: StateFiles, version: StateVersion, builders: Sequence[StoreBuilder]) -> None:
        """Write a snapshot of a committed version, if it is due and no snapshot of the task is being written.

        Parameters
        ----------
        files : StateFiles
            The task's state files.
        version : StateVersion
        builders : sequence of StoreBuilder
            The stores of the task.
        """
        last = self._last.get(files.name)
        if last is None or last.done():
            self._last[files.name] = self._thread.submit(_write_if_due, files, version, builders)

    def wait(self) -> None:
        """Wait until all snapshots are written."""
        for last in self._last.values():
            last.result()


def _write_if_due(files: StateFiles, version: StateVersion, builders: Sequence[StoreBuilder]) -> None:
    try:
        if files.is_snapshot_due(_MAX_FILES):
            chain = files.rebuild(version)
            files.write_snapshot(version, chain[-1].metadata, merged_stores(builders, chain))
            files.prune(chain[0].version.number)
    except StateError as error:
        logger.warning("No snapshot was written: %s", error)


def merged_stores(builders: Sequence[StoreBuilder], chain: Sequence[StateFile]) -> dict[str, Changes]:
    """Merge the files of a version, oldest first, and return all rows of each store."""
    changes: dict[str, Changes] = {}
    for builder in builders:
        parts = [file.stores[builder.name] for file in chain if builder.name in file.stores]
        if parts:
            changes[builder.name] = merged(builder, parts)
    return changes


SNAPSHOTS = Snapshots()
"""The snapshots of this process."""

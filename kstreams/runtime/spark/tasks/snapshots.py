"""`Snapshots`: makes snapshots of states aside, in a thread of the worker, while the next tasks run.

A snapshot is due when the changes since the last one outweigh it: so the whole is written no more often than it is
written anew anyway, and a state is rebuilt from no more than twice what it holds.
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

_MOST_FILES = 200
"""So many files are merged also where they weigh little: whoever rebuilds the state reads each of them."""


class Snapshots:
    """The snapshots that one worker makes, one after the other."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "kstreams-snapshots")
        self._last: dict[str, Future[None]] = {}  # by task

    def offer(self, files: StateFiles, version: StateVersion, builders: Sequence[StoreBuilder]) -> None:
        """Make one of a version that counts, if it is due; none where the task's one before is not done yet.

        Parameters
        ----------
        files : StateFiles
            The task's files.
        version : StateVersion
        builders : sequence of StoreBuilder
            Its stores.
        """
        last = self._last.get(files.name)
        if last is None or last.done():
            self._last[files.name] = self._thread.submit(_take, files, version, builders)

    def wait(self) -> None:
        """Wait for those that are still to be made."""
        for last in self._last.values():
            last.result()


def _take(files: StateFiles, version: StateVersion, builders: Sequence[StoreBuilder]) -> None:
    try:
        if files.is_snapshot_due(_MOST_FILES):
            chain = files.rebuild(version)
            files.write_snapshot(version, chain[-1].metadata, merged_stores(builders, chain))
            files.prune(chain[0].version.number)
    except StateError as error:
        logger.warning("No snapshot was made: %s", error)


def merged_stores(builders: Sequence[StoreBuilder], chain: Sequence[StateFile]) -> dict[str, Changes]:
    """What the files of a version, oldest first, make up: by store all that it holds."""
    changes: dict[str, Changes] = {}
    for builder in builders:
        parts = [file.stores[builder.name] for file in chain if builder.name in file.stores]
        if parts:
            changes[builder.name] = merged(builder, parts)
    return changes


SNAPSHOTS = Snapshots()
"""Those of this process."""

"""`Rebuilds`: deletes damaged stores, so that they are restored when their task is opened again."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from kstreams.errors import CorruptStateError, StateError
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.state.global_tables import GlobalTables
from kstreams.runtime.native.state.restore import changelog_of

logger = logging.getLogger(__name__)


class Rebuilds:
    """The rebuilds of one running application.

    Parameters
    ----------
    application_id : str
    state_folder : Path
        The folder of its stores.
    """

    def __init__(self, application_id: str, state_folder: Path) -> None:
        self._application_id = application_id
        self._state_folder = state_folder
        self._unproven: set[Path] = set()  # task folders whose stores were deleted, without a commit since
        self._lock = threading.Lock()
        self.count = 0
        """The number of rebuilds of stores."""

    def delete_damaged(self, damage: CorruptStateError, plans: Sequence[TaskPlan], tables: GlobalTables) -> None:
        """Delete the damaged files of a task, or mark the global tables as damaged.

        Parameters
        ----------
        damage : CorruptStateError
        plans : sequence of TaskPlan
            The tasks, one of which owns the files unless they belong to global tables.
        tables : GlobalTables
            The global tables, which are loaded from their topics whenever they are opened.

        Raises
        ------
        StateError
            If a store has no topic to be restored from, or is damaged again before the next commit.
        """
        if damage.folder is None:
            raise damage
        with self._lock:
            if not tables.owns(damage):
                self._refuse_lost(damage, damage.folder.parent, plans)
                self._note(damage, damage.folder.parent)
                shutil.rmtree(damage.folder)
            elif not tables.is_damaged:
                self._note(damage, damage.folder.parent)
                tables.mark_damaged()

    def _refuse_lost(self, damage: CorruptStateError, task: Path, plans: Sequence[TaskPlan]) -> None:
        lost = [
            name for plan in plans if self._state_folder / str(plan.id) == task for name in self._not_restorable(plan)
        ]
        if lost:
            raise StateError(
                f"{damage}. The stores {', '.join(lost)} have no changelog, so what they held is lost: delete {task} "
                "to go on with empty ones, or run once with --reset to start anew."
            ) from damage

    def _note(self, damage: CorruptStateError, owner: Path) -> None:
        if owner in self._unproven:
            raise StateError(
                f"{damage}. They were rebuilt just before: have disk and memory of this machine checked, or give the "
                "application another state.dir."
            ) from damage
        self._unproven.add(owner)
        self.count += 1
        logger.warning("%s. They are rebuilt from their topics", damage)

    def committed(self, tasks: Iterable[str]) -> None:
        """Note that tasks have committed, so that their rebuilt stores are not damaged."""
        self._unproven.difference_update(self._state_folder / task for task in tasks)

    def _not_restorable(self, plan: TaskPlan) -> list[str]:
        on_disk = [store for store in plan.sub_topology.stores if store.store == "rocksdb"]
        return [store.name for store in on_disk if changelog_of(store, plan, self._application_id) is None]

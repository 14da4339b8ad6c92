"""`StoppedStores`: the stores of a stopped application on this machine, as of its last commit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from kstreams.config import Config, MemoryShares
from kstreams.errors import StateError
from kstreams.runtime.native.state.locks import state_folder
from kstreams.runtime.native.state.store_descriptions import StoreDescriptions
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.state import StateLimits, TaskState, open_task_state
from kstreams.state.api import StoreBuilder
from kstreams.state.read_only_store import CommittedPartition, ReadOnlyStore


class StoppedStores:
    """The stores on disk. The application cannot be started before this object is closed.

    Parameters
    ----------
    stores : StoreDescriptions
    config : Config

    Raises
    ------
    StateError
        If the application runs, or has no state on this machine.
    """

    def __init__(self, stores: StoreDescriptions, config: Config) -> None:
        self._kept = stores
        self._folder = state_folder(config)
        self._limits = StateLimits.of(MemoryShares.of(config))
        self._open: dict[Path, TaskState] = {}
        self._resources = ExitStack()
        if not TopologyFile(self._folder).exists:
            raise StateError(f"the application {config.application_id!r} has no state in {self._folder}")
        self._resources.callback(stores.locked(config).release)

    def __enter__(self) -> StoppedStores:
        return self

    def __exit__(self, *exc: object) -> None:
        self._resources.close()

    def store(self, name: str) -> ReadOnlyStore:
        """Return a store with its partitions on this machine. Raises as `partitions`."""
        store: ReadOnlyStore = self._kept.builder(name).read_only(self.partitions(name))
        return store

    def partitions(self, name: str) -> list[CommittedPartition]:
        """Return the partitions of a store on this machine, in their order.

        If several processes have a partition, return the one with the greatest changelog offset.

        Raises
        ------
        StateError
            If the machine has no bytes of the store.
        TopologyError
            If the state is that of another topology.
        """
        builder = self._kept.builder(name)
        if builder.store != "rocksdb" or not builder.kind.reads_committed:
            raise StateError(f"the store {name!r} keeps no bytes on disk: it is made anew when the application starts")
        latest = dict[int, TaskState]()
        for folder in (self._folder, *sorted(self._folder.glob("process-*"))):
            for number, state in self._tasks(name, folder):
                if number not in latest or _end(state, name) > _end(latest[number], name):
                    latest[number] = state
        if not latest:
            raise StateError(f"nothing of the store {name!r} is in {self._folder}")
        return [CommittedPartition(number, state.committed, name) for number, state in sorted(latest.items())]

    def _tasks(self, name: str, folder: Path) -> list[tuple[int, TaskState]]:
        """Return the tasks with a store in the folder of a process, with their partitions."""
        sub_topology, stores = self._kept.tasks_in(folder, name)
        places = [
            folder_of_task
            for folder_of_task in folder.glob(f"{sub_topology}_*")
            if (folder_of_task / "rocksdb" / "CURRENT").exists()
        ]
        return [(int(place.name.rpartition("_")[2]), self._state(stores, place)) for place in places]

    def _state(self, stores: Sequence[StoreBuilder], place: Path) -> TaskState:
        if place not in self._open:
            self._open[place] = state = open_task_state(stores, place, limits=self._limits)
            self._resources.callback(state.close)
        return self._open[place]


def _end(state: TaskState, store: str) -> int:
    """Return the changelog offset of a store, or -1 if it has none."""
    offset = state.changelog_offset(store)
    return -1 if offset is None else offset

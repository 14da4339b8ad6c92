"""`StoppedStores`: the stores of a stopped application on this machine, as of its last commit.

`StoreDescriptions` describe them: as a topology declares the stores, or as the state folder describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from kstreams.config import Config, MemoryShares
from kstreams.errors import StateError, TopologyError
from kstreams.processor.topology.fingerprint import StoreFingerprint, changes, fingerprint_of, moves, refusal
from kstreams.processor.topology.serde_binding import SerdeBinding
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.state.locks import ProcessFolder, lock_alone, lock_folder, state_folder
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.schemas import SchemaRegistry
from kstreams.serdes.type_names import serde_named
from kstreams.state import StateLimits, TaskState, open_task_state
from kstreams.state.read_only_store import CommittedPartition, ReadOnlyStore
from kstreams.state.store_builder import StoreBuilder, store_kind, store_named


class TasksOfStore(NamedTuple):
    """The tasks in a folder that have a store: the number of their sub-topology, and all stores of it."""

    sub_topology: int
    stores: Sequence[StoreBuilder]


class StoreDescriptions(Protocol):
    """The descriptions of the stores of a stopped application."""

    def locked(self, config: Config) -> ProcessFolder:
        """Lock the application, so that no process runs it."""
        ...

    def builder(self, name: str) -> StoreBuilder:
        """Return the description of a store. Raises StateError if there is no store of this name."""
        ...

    def tasks_in(self, folder: Path, name: str) -> TasksOfStore:
        """Return the tasks of a folder that have a store. Raises TopologyError if another topology wrote the folder."""
        ...


class DeclaredStores:
    """The stores of a topology."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology

    def locked(self, config: Config) -> ProcessFolder:
        return lock_alone(config)

    def builder(self, name: str) -> StoreBuilder:
        return store_named(self._topology.stores, name)

    def tasks_in(self, folder: Path, name: str) -> TasksOfStore:
        old = TopologyFile(folder).read()
        new = fingerprint_of(self._topology)
        refused = refusal(changes(old, new) if old.stores else [], str(folder))
        if refused is not None:
            raise TopologyError(refused)
        (sub,) = (sub for sub in self._topology.sub_topologies if self.builder(name) in sub.stores)
        before = {now: before for before, now in moves(old, new).items()}
        return TasksOfStore(before.get(sub.id, sub.id), sub.stores)


class DescribedStores:
    """The stores with built-in types that `topology.json` in the state folder of an application describes.

    Parameters
    ----------
    config : Config
    registry : callable
        `() -> SchemaRegistry`, called only if types need it.
    """

    def __init__(self, config: Config, registry: Callable[[], SchemaRegistry]) -> None:
        # Keys of look-ups are written with the latest schema: the folder does not name the schema.
        self._binding = SerdeBinding(config.replace({"use.latest.version": True}), registry)
        self._described = {store.name: store for store in TopologyFile(state_folder(config)).read().stores}

    def locked(self, config: Config) -> ProcessFolder:
        return lock_folder(config)

    def builder(self, name: str) -> StoreBuilder:
        description = self._described.get(name)
        if description is None:
            raise StateError(f"there is no store {name!r}; there are: {', '.join(sorted(self._described)) or 'none'}")
        if (builder := _builder(description)) is None:
            raise StateError(f"the store {name!r} is of types that only the application knows: name its file by --app")
        return self._binding.store(builder)

    def tasks_in(self, folder: Path, name: str) -> TasksOfStore:
        stores = [store for store in TopologyFile(folder).read().stores if store.on_disk]
        [own] = [store.sub_topology for store in stores if store.name == name] or [-1]
        builders = (_builder(store) for store in stores if store.sub_topology == own)
        return TasksOfStore(own, [self._binding.store(builder) for builder in builders if builder is not None])


def _builder(store: StoreFingerprint) -> StoreBuilder | None:
    if store.types is None:
        return None
    key, value = (serde_named(name) for name in store.types)
    return StoreBuilder(
        store.name,
        store_kind(store.kind),
        key,
        value,
        "rocksdb" if store.on_disk else "memory",
        retention_ms=store.retention_ms,
        window_size_ms=store.window_size_ms,
        retain_duplicates=store.retain_duplicates,
        time_ordered=store.time_ordered,
        sparse=store.sparse,
        caching=store.caching,
        history_retention_ms=store.history_retention_ms,
        queryable=True,
    )


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
        self._descriptions = stores
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
        store: ReadOnlyStore = self._descriptions.builder(name).read_only(self.partitions(name))
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
        builder = self._descriptions.builder(name)
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
        sub_topology, stores = self._descriptions.tasks_in(folder, name)
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

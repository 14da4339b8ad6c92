"""The stores in a state folder: as a topology declares them, or as the folder describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from kstreams.config import Config
from kstreams.errors import StateError, TopologyError
from kstreams.processor.topology.fingerprint import StoreFingerprint, changes, fingerprint_of, moves, refusal
from kstreams.processor.topology.serde_binding import SerdeBinding
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.state.locks import ProcessFolder, lock_alone, lock_folder, state_folder
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.schemas import SchemaRegistry
from kstreams.serdes.type_names import serde_named
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

"""Which stores a state folder keeps: as a topology declares them, or as the folder itself describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from kstreams.config import Config
from kstreams.errors import StateError, TopologyError
from kstreams.processor.topology.fingerprint import StoreFingerprint, fingerprint_of
from kstreams.processor.topology.fingerprint_changes import changes, moves, refusal
from kstreams.processor.topology.serde_binding import SerdeBinding
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.state.locks import ProcessFolder, lock_alone, lock_folder, state_folder
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.schemas import SchemaRegistry
from kstreams.serdes.type_names import serde_named
from kstreams.state.store_builder import StoreBuilder, store_kind, store_named


class TasksOfStore(NamedTuple):
    """The tasks in a folder that have a store: the number of their sub-topology there, and all its stores."""

    sub_topology: int
    stores: Sequence[StoreBuilder]


class StoreDescriptions(Protocol):
    """What is known of the stores of an application that does not run."""

    def locked(self, config: Config) -> ProcessFolder:
        """Keep others from running it."""
        ...

    def builder(self, name: str) -> StoreBuilder:
        """The description of a store; raises StateError when there is none of this name."""
        ...

    def tasks_in(self, folder: Path, name: str) -> TasksOfStore:
        """Which tasks of a folder have a store; raises TopologyError when the folder is that of another topology."""
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
    """The stores that `topology.json` in the state folder of an application describes: those of built-in types.

    Parameters
    ----------
    config : Config
    registry : callable
        `() -> SchemaRegistry`; not called unless types need it.
    """

    def __init__(self, config: Config, registry: Callable[[], SchemaRegistry]) -> None:
        # Keys to look for are written as the application wrote them last: the folder does not say with which schema.
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

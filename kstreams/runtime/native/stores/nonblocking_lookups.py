"""`NonblockingLookups`: reads of committed values by key in the thread of the caller, without a wait.

The local partitions of each store are cached until the tasks of the process or the assignment change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from kstreams.kernel.murmur2 import partition_of
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.stores.metadata import HostInfo
from kstreams.runtime.native.stores.streams_metadata_state import StreamsMetadataState
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.serdes import Serde
from kstreams.state.api import StoreBuilder
from kstreams.state.committed import CommittedViews
from kstreams.state.read_only_store import Answer
from kstreams.state.store_builder import store_named


class _LocalPartitions(NamedTuple):
    """The active partitions of a store in this process."""

    views: Mapping[int, CommittedViews]
    partition_count: int
    """The number of partitions of the store in all processes."""
    key_serde: Serde[object] | None

    def order(self, key: object) -> Sequence[int]:
        """Return the partition of the default partitioner for a key, then all other partitions."""
        if self.partition_count == 1:
            return tuple(self.views) or (0,)
        home = 0 if self.key_serde is None else partition_of(self.key_serde.serialize(key), self.partition_count)
        return home, *(number for number in range(self.partition_count) if number != home)


class _Cache(NamedTuple):
    """The local partitions by store. They are valid while context, tasks and assignment are the same."""

    context: RuntimeContext | None
    tasks: Sequence[object]
    assignment: object
    stores: dict[str, _LocalPartitions]


class NonblockingLookups:
    """Look-ups of keys in the partitions of this process.

    Parameters
    ----------
    topology : Topology
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._cache = _Cache(None, (), None, {})

    def look_up(
        self, client: RunningClient, store: str, key: object, read: Callable[[Any], Any]
    ) -> dict[int, Answer] | None:
        """See `QueryableStores.committed_nowait`."""
        local_partitions = self._local_partitions(client, store)
        answers = dict[int, Answer]()
        for number in local_partitions.order(key):
            views = local_partitions.views.get(number)
            view = None if views is None else views.acquire_nowait()
            if views is None or view is None:
                return None
            try:
                answers[number] = Answer(read(view.store(store)), view.position)
            finally:
                views.give_back(view)
            if answers[number].value is not None:
                break
        return answers

    @contextmanager
    def commit_listener(self, client: RunningClient, store: str, on_commit: Callable[[], None]) -> Iterator[bool]:
        """See `QueryableStores.commit_listener`."""
        local_partitions = self._local_partitions(client, store)
        for views in local_partitions.views.values():
            views.listeners.add(on_commit)
        try:
            yield len(local_partitions.views) == local_partitions.partition_count
        finally:
            for views in local_partitions.views.values():
                views.listeners.discard(on_commit)

    def _local_partitions(self, client: RunningClient, store: str) -> _LocalPartitions:
        cache = self._cache
        assignment = None if client.member is None else client.member.owners_and_states()
        tasks = [task for thread in client.threads for task in thread.tasks]
        if assignment is not cache.assignment or client.context is not cache.context or tasks != cache.tasks:
            self._cache = cache = _Cache(client.context, tasks, assignment, {})
        if store not in cache.stores:
            cache.stores[store] = _local_partitions(client, store_named(self._topology.stores, store), tasks)
        return cache.stores[store]


def _local_partitions(client: RunningClient, store: StoreBuilder, tasks: Sequence[ActiveTask]) -> _LocalPartitions:
    context = client.context
    hosts = StreamsMetadataState(context, client.manager, client.member, client.threads).partition_hosts(store)
    views = {task.plan.partition: task.state.committed for task in tasks if store.name in task.state.stores}
    if store.name in context.topology.global_tables.committed:
        views = {-1: context.topology.global_tables.committed[store.name]}
    own_host = HostInfo.of(context.environment.config["application.server"] or "")
    active_views = {
        number: view
        for number, view in views.items()
        if store.name in view and hosts[number].active in (None, own_host)
    }
    return _LocalPartitions(active_views, len(hosts), store.key)

"""`LookUpsAtOnce`: committed values of keys, read by who asks, without a wait and without a look at every task.

Which partitions are here is remembered as long as the tasks of the process and the assignment are the same.
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
from kstreams.runtime.native.stores.places import StorePlaces
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.serdes import Serde
from kstreams.state.api import StoreBuilder
from kstreams.state.committed import CommittedViews
from kstreams.state.read_only_store import Answer
from kstreams.state.store_builder import store_named


class _Here(NamedTuple):
    """The partitions of a store that are active in this process, of so many."""

    partitions: Mapping[int, CommittedViews]
    of: int
    key: Serde[object] | None

    def order(self, key: object) -> Sequence[int]:
        """The partition where a key should be, and all others."""
        if self.of == 1:
            return tuple(self.partitions) or (0,)
        home = 0 if self.key is None else partition_of(self.key.serialize(key), self.of)
        return home, *(number for number in range(self.of) if number != home)


class _Remembered(NamedTuple):
    """The partitions of stores, as long as context, tasks and assignment stay the same."""

    context: RuntimeContext | None
    tasks: Sequence[object]
    known: object
    stores: dict[str, _Here]


class LookUpsAtOnce:
    """Looks up keys in the partitions of this process.

    Parameters
    ----------
    topology : Topology
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._remembered = _Remembered(None, (), None, {})

    def ask(
        self, client: RunningClient, store: str, key: object, question: Callable[[Any], Any]
    ) -> dict[int, Answer] | None:
        """See `QueryableStores.committed_at_once`."""
        here = self._here(client, store)
        answers = dict[int, Answer]()
        for number in here.order(key):
            views = here.partitions.get(number)
            view = None if views is None else views.acquire_at_once()
            if views is None or view is None:
                return None
            try:
                answers[number] = Answer(question(view.store(store)), view.position)
            finally:
                views.give_back(view)
            if answers[number].value is not None:
                break
        return answers

    @contextmanager
    def woken(self, client: RunningClient, store: str, wake: Callable[[], None]) -> Iterator[bool]:
        """See `QueryableStores.woken`."""
        here = self._here(client, store)
        for views in here.partitions.values():
            views.wakes.add(wake)
        try:
            yield len(here.partitions) == here.of
        finally:
            for views in here.partitions.values():
                views.wakes.discard(wake)

    def _here(self, client: RunningClient, store: str) -> _Here:
        before = self._remembered
        assignment = None if client.member is None else client.member.known()
        tasks = [task for thread in client.threads for task in thread.tasks]
        if assignment is not before.known or client.context is not before.context or tasks != before.tasks:
            self._remembered = before = _Remembered(client.context, tasks, assignment, {})
        if store not in before.stores:
            before.stores[store] = _here_now(client, store_named(self._topology.stores, store), tasks)
        return before.stores[store]


def _here_now(client: RunningClient, store: StoreBuilder, tasks: Sequence[ActiveTask]) -> _Here:
    context = client.context
    holders = StorePlaces(context, client.manager, client.member, client.threads).holders(store)
    views = {task.plan.partition: task.state.committed for task in tasks if store.name in task.state.stores}
    if store.name in context.topology.global_tables.committed:
        views = {-1: context.topology.global_tables.committed[store.name]}
    own = HostInfo.of(context.environment.config["application.server"] or "")
    here = {n: view for n, view in views.items() if store.name in view and holders[n].active in (None, own)}
    return _Here(here, len(holders), store.key)

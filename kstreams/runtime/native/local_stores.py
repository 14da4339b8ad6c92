"""`LocalStores`: the stores of a process, and how each of their partitions is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from kstreams.errors import StateError, StoreNotAvailableError
from kstreams.kernel.murmur2 import partition_of
from kstreams.runtime.native.queries.store_queries import StoreQueries
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.tasks.standby_task import StandbyTask
from kstreams.runtime.native.thread.stream_thread import StreamThread
from kstreams.state.api import StoreBuilder
from kstreams.state.queries import FailureReason, QueryResult, StateQuery, result_of
from kstreams.state.read_only_store import Answer, CommittedPartition, PartitionOf, Position, StorePartition

_TIMEOUT_S = 30.0
StoreRead = Callable[[Any], Any]
"""Reads a store."""


@dataclass(frozen=True, slots=True)
class CurrentPartition:
    """A partition with its uncommitted updates, which the thread of its task reads.

    Parameters
    ----------
    number : int
    queries : StoreQueries
        The queries for the thread.
    store : Any
    position : callable
        Returns the last processed offsets of the task. The thread calls it together with the read.
    """

    number: int
    queries: StoreQueries
    store: Any
    position: Callable[[], Position]

    def begin(self, read: StoreRead) -> Callable[[], Answer]:
        """Have the thread read. The returned function waits, and raises StoreNotAvailableError if the thread hangs."""
        return partial(self._wait, self.queries.put(partial(self._answer, read)))

    def _wait(self, future: Future[Answer]) -> Answer:
        try:
            return future.result(_TIMEOUT_S)
        except TimeoutError:
            if future.done():
                raise  # the read itself timed out
            raise StoreNotAvailableError(
                f"the task of this store has not answered for {_TIMEOUT_S:.0f} s, because it is at work: ask again, or "
                'with isolation="read_committed", which waits for no task'
            ) from None

    def _answer(self, read: StoreRead) -> Answer:
        return Answer(read(self.store), self.position())


@dataclass(frozen=True, slots=True)
class GlobalPartition:
    """A global table in memory. Reads block its updates.

    Parameters
    ----------
    call : callable
        Calls a function while the table does not change.
    store : Any
    """

    call: Callable[[Callable[[], Any]], Any]
    store: object
    number = -1

    def begin(self, read: StoreRead) -> Callable[[], Answer]:
        """Read when the returned function is called."""
        return lambda: Answer(self.call(partial(read, self.store)), {})


Isolation = Literal["read_uncommitted", "read_committed"]
"""The rows that a query sees: with all processed records, or as of the last commit."""


@dataclass(frozen=True)
class LocalStores:
    """The stores of a process.

    Parameters
    ----------
    context : RuntimeContext
    threads : sequence of StreamThread
    standbys : callable
        Returns the present standby tasks.
    """

    context: RuntimeContext
    threads: Sequence[StreamThread]
    standbys: Callable[[], list[StandbyTask]]

    def partitions(self, store: StoreBuilder, isolation: Isolation, *, stale: bool) -> list[StorePartition]:
        """Return the local partitions of a store, by number.

        Parameters
        ----------
        store : StoreBuilder
        isolation : Isolation
        stale : bool
            Whether to include standbys.
        """
        if isolation == "read_committed" and not self._has_committed_views(store):
            raise StateError(
                f"the store {store.name!r} keeps no bytes of its last commit: ask for it with "
                'isolation="read_uncommitted", which its task answers'
            )
        if store.name in self.context.topology.global_tables.stores:
            return [self._of_global_table(store)]
        partitions = [*self._active(store, isolation), *(self._standby(store) if stale else ())]
        return sorted(
            {partition.number: partition for partition in reversed(partitions)}.values(),
            key=lambda partition: partition.number,
        )

    def query(
        self,
        store: StoreBuilder,
        query: StateQuery,
        partitions: Collection[int] | None,
        bound: Position,
        isolation: Isolation,
        *,
        require_active: bool,
    ) -> dict[int, QueryResult]:
        """Return the results of a typed query by partition. All partitions read at the same time.

        `partitions` is None for all local partitions.
        """
        local_partitions = {
            partition.number: partition for partition in self.partitions(store, isolation, stale=not require_active)
        }
        numbers = sorted(local_partitions if partitions is None else partitions)
        if store.kind.name not in query.kinds:
            return dict.fromkeys(numbers, QueryResult(failure=FailureReason.UNKNOWN_QUERY_TYPE))
        pending_answers = {
            number: local_partitions[number].begin(query.read) if number in local_partitions else None
            for number in numbers
        }
        return {
            number: self._absent(store, number) if answer is None else result_of(answer, number, bound)
            for number, answer in pending_answers.items()
        }

    def _absent(self, store: StoreBuilder, number: int) -> QueryResult:
        tasks = self.context.topology.layout.tasks
        if all(store not in task.sub_topology.stores or task.partition != number for task in tasks):
            return QueryResult(failure=FailureReason.DOES_NOT_EXIST)
        is_standby = any(partition.number == number for partition in self._standby(store))
        return QueryResult(failure=FailureReason.NOT_ACTIVE if is_standby else FailureReason.NOT_PRESENT)

    def partition_of(self, store: StoreBuilder) -> PartitionOf:
        """Return the default partitioner for the keys of a store. It returns -1 if the store has no serde of keys."""
        tasks = [task for task in self.context.topology.layout.tasks if store in task.sub_topology.stores]
        serde = store.key
        count = len(tasks)
        if serde is None or not count:
            return lambda key: -1
        return lambda key: partition_of(serde.serialize(key), count)

    def _has_committed_views(self, store: StoreBuilder) -> bool:
        return store.kind.reads_committed and store.store == "rocksdb"

    def _of_global_table(self, store: StoreBuilder) -> StorePartition:
        """Return the partition of a global table, whose updates are committed one by one."""
        tables = self.context.topology.global_tables
        if store.name in tables.committed:
            return CommittedPartition(-1, tables.committed[store.name], store.name)
        return GlobalPartition(tables.run_query, tables.stores[store.name])

    def _active(self, store: StoreBuilder, isolation: Isolation) -> Iterator[StorePartition]:
        name = store.name
        for thread in self.threads:
            for task in list(thread.tasks):
                if name in task.state.stores and isolation == "read_committed":
                    yield CommittedPartition(task.plan.partition, task.state.committed, name)
                elif name in task.state.stores:
                    number = task.plan.partition
                    live = task.state.stores[name]
                    yield CurrentPartition(number, thread.store_queries, live, task.position)

    def _standby(self, store: StoreBuilder) -> Iterator[StorePartition]:
        for standby in self.standbys():
            if store.name in standby.state.committed:
                yield CommittedPartition(standby.plan.partition, standby.state.committed, store.name)

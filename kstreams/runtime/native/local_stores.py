"""`LocalStores`: the stores of a process, and who answers for each of their partitions."""

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

_WAIT_S = 30.0
StoreRead = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class CurrentPartition:
    """A store as its task sees it now; the thread of the task answers, within half a minute.

    Parameters
    ----------
    number : int
    queries : StoreQueries
        Of the thread.
    store : Any
    position : callable
        What the store stands for while the thread answers.
    """

    number: int
    queries: StoreQueries
    store: Any
    position: Callable[[], Position]

    def begin(self, read: StoreRead) -> Callable[[], Answer]:
        """Let the thread read. The returned function waits, and raises StoreNotAvailableError if the thread hangs."""
        return partial(self._wait, self.queries.put(partial(self._answer, read)))

    def _wait(self, future: Future[Answer]) -> Answer:
        try:
            return future.result(_WAIT_S)
        except TimeoutError:
            if future.done():
                raise  # the read itself timed out
            raise StoreNotAvailableError(
                f"the task of this store has not answered for {_WAIT_S:.0f} s: it is at work. Ask again, or with "
                'isolation="read_committed", which waits for no task'
            ) from None

    def _answer(self, read: StoreRead) -> Answer:
        return Answer(read(self.store), self.position())


@dataclass(frozen=True, slots=True)
class GlobalPartition:
    """A global table in memory, read while it does not change.

    Parameters
    ----------
    ask : callable
        Calls a function while the table does not change.
    store : Any
    """

    ask: Callable[[Callable[[], Any]], Any]
    store: object
    number = -1

    def begin(self, read: StoreRead) -> Callable[[], Answer]:
        """Read when the returned function is called."""
        return lambda: Answer(self.ask(partial(read, self.store)), {})


Isolation = Literal["read_uncommitted", "read_committed"]
"""What a query sees: all that was processed, or what is committed."""


@dataclass(frozen=True)
class LocalStores:
    """The stores of a process.

    Parameters
    ----------
    context : RuntimeContext
    threads : sequence of StreamThread
    standbys : callable
        The standbys now.
    """

    context: RuntimeContext
    threads: Sequence[StreamThread]
    standbys: Callable[[], list[StandbyTask]]

    def partitions(self, store: StoreBuilder, isolation: Isolation, *, stale: bool) -> list[StorePartition]:
        """Who answers for the partitions of a store that are here, in their order.

        Parameters
        ----------
        store : StoreBuilder
        isolation : Isolation
        stale : bool
            Whether standbys answer too.
        """
        if isolation == "read_committed" and not self._is_seen_committed(store):
            raise StateError(
                f"the store {store.name!r} keeps no bytes that say what is committed: ask for it with "
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
        """The answers to a typed query, by partition (None: all that are here); all are asked at once."""
        here = {
            partition.number: partition for partition in self.partitions(store, isolation, stale=not require_active)
        }
        numbers = sorted(here if partitions is None else partitions)
        if store.kind.name not in query.kinds:
            return dict.fromkeys(numbers, QueryResult(failure=FailureReason.UNKNOWN_QUERY_TYPE))
        pending = {number: here[number].begin(query.ask) if number in here else None for number in numbers}
        return {
            number: self._absent(store, number) if answer is None else result_of(answer, number, bound)
            for number, answer in pending.items()
        }

    def _absent(self, store: StoreBuilder, number: int) -> QueryResult:
        if all(
            store not in task.sub_topology.stores or task.partition != number
            for task in self.context.topology.layout.tasks
        ):
            return QueryResult(failure=FailureReason.DOES_NOT_EXIST)
        is_standby = any(partition.number == number for partition in self._standby(store))
        return QueryResult(failure=FailureReason.NOT_ACTIVE if is_standby else FailureReason.NOT_PRESENT)

    def partition_of(self, store: StoreBuilder) -> PartitionOf:
        """The partition in which Kafka's default partitioner puts a key of a store; -1 where that is not known."""
        tasks = [task for task in self.context.topology.layout.tasks if store in task.sub_topology.stores]
        serde = store.key
        count = len(tasks)
        if serde is None or not count:
            return lambda key: -1
        return lambda key: partition_of(serde.serialize(key), count)

    def _is_seen_committed(self, store: StoreBuilder) -> bool:
        return store.kind.reads_committed and store.store == "rocksdb"

    def _of_global_table(self, store: StoreBuilder) -> StorePartition:
        """A global table is what its last update left: there is nothing else to see."""
        tables = self.context.topology.global_tables
        if store.name in tables.committed:
            return CommittedPartition(-1, tables.committed[store.name], store.name)
        return GlobalPartition(tables.ask, tables.stores[store.name])

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

"""`QueryableStores`: the stores of an application as queries see them, and where in the application they are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, get_args, overload

import pyarrow as pa

from kstreams.config import Config
from kstreams.errors import StateError, StoreNotAvailableError
from kstreams.kernel.durations import Time
from kstreams.os.forks import of_one_process
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.client import Client
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.local_application import LocalApplication
from kstreams.runtime.native.local_stores import Isolation, LocalStores
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.stores.at_once import LookUpsAtOnce
from kstreams.runtime.native.stores.metadata import (
    HostInfo,
    KeyQueryMetadata,
    LagInfo,
    PartitionHolders,
    StreamsMetadata,
)
from kstreams.runtime.native.stores.places import StorePlaces
from kstreams.state.queries import StateQuery, StateQueryResult
from kstreams.state.read_only_store import Answer, Position, ReadOnlyKeyValueStore, ReadOnlyStore
from kstreams.state.store_builder import store_named
from kstreams.state.tables.sql import answer

View = TypeVar("View", bound=ReadOnlyStore)


class QueryableStores:
    """What `KafkaStreams` knows of stores.

    Parameters
    ----------
    application : LocalApplication
    client : Client
        Replaced by the running client when the application is started.
    """

    def __init__(self, application: LocalApplication, client: Client) -> None:
        self._application = application
        self._topology = application.topology
        self._client: Client | RunningClient = client
        self._at_once = LookUpsAtOnce(application.topology)

    @property
    def state(self) -> State:
        """The state now."""
        return self._application.life.state

    @property
    def topology(self) -> Topology:
        """What it runs."""
        return self._topology

    @property
    def config(self) -> Config:
        """Its settings."""
        return self._application.config

    @overload
    def store(
        self, name: str, *, isolation: Isolation | None = ..., partition: int | None = ..., stale: bool = ...
    ) -> ReadOnlyKeyValueStore: ...
    @overload
    def store(
        self,
        name: str,
        view: type[View],
        *,
        isolation: Isolation | None = ...,
        partition: int | None = ...,
        stale: bool = ...,
    ) -> View: ...
    def store(
        self,
        name: str,
        view: type[ReadOnlyStore] | None = None,
        *,
        isolation: Isolation | None = None,
        partition: int | None = None,
        stale: bool = False,
    ) -> ReadOnlyStore:
        """A store to query: all its local partitions as one; or a global store.

        Kafka Streams: `store(StoreQueryParameters.fromNameAndType(name, type))`.

        Parameters
        ----------
        name : str
        view : type, default that of the store's kind
            `ReadOnlyKeyValueStore`, `ReadOnlyWindowStore` or another class of `kstreams.state.read_only_store`: what a
            type checker takes the store for; without it, a key-value store.
        isolation : "read_uncommitted" or "read_committed", optional
            Uncommitted updates included: the task answers, between two batches. Or what the last commit left: the
            caller's thread reads it, and waits for nobody. Default: `default.interactive.query.isolation.level`, which
            is the first unless it is set, as in Kafka Streams.
        partition : int, optional
            Only this one. Kafka Streams: `withPartition`.
        stale : bool
            Whether standbys answer too, for partitions that are not active here, also while the application rebalances.
            Kafka Streams: `enableStaleStores`.

        Raises
        ------
        StoreNotAvailableError
            When the application is not RUNNING, or has no partition of the store, or not that one, in this process now.
        StateError
            When there is no store of that name, or it is of another kind.
        """
        local = self._local_stores(stale=stale)
        builder = store_named(self._topology.stores, name)
        kind = builder.kind
        if view is not None and not issubclass(kind.view, view):
            raise StateError(f"the store {name!r} is a {kind.name} store: ask for it as {kind.view.__name__}")
        partitions = local.partitions(builder, self._level(isolation), stale=stale)
        selected = [
            partition_view for partition_view in partitions if partition is None or partition_view.number == partition
        ]
        if not selected:
            which = "no partition" if partition is None else f"not the partition {partition}"
            raise StoreNotAvailableError(f"this process has {which} of the store {name!r} now: others may have it")
        store: ReadOnlyStore = builder.read_only(selected, partition_of=local.partition_of(builder))
        of_one_process(store, f"The store {name!r}", StateError)
        return store

    def sql(self, query: str, *, isolation: Isolation | None = None, as_of: Time | None = None) -> pa.Table:
        """The answer of DuckDB to a SELECT over stores, each a table of its name (see `ReadOnlyStore.to_arrow`).

        Of each store it sees the partitions of this process. Each is read once, one store after the other: without
        updates in between only when nothing is processed meanwhile.

        Parameters
        ----------
        query : str
            Names that are no plain words stand in double quotes: `select * from "orders-per-customer"`.
        isolation : "read_uncommitted" or "read_committed", optional
            As for `store`; what is committed is read without the tasks, so they work on meanwhile.
        as_of : datetime or int, optional
            Of all stores only the versions that held at this time (an aware datetime, or milliseconds), or the windows
            and sessions that contain it.

        Raises
        ------
        StoreNotAvailableError
            As for `store`.
        StateError
            When DuckDB is not installed or cannot answer.
        """

        def table_of(name: str) -> pa.Table:
            view = self._topology.stores[name].kind.view
            return self.store(name, view, isolation=isolation).to_arrow(as_of)

        return answer(query, self._topology.stores, table_of)

    def query(
        self,
        store: str,
        query: StateQuery,
        *,
        partitions: Collection[int] | None = None,
        bound: Position | None = None,
        require_active: bool = False,
        isolation: Isolation | None = None,
    ) -> StateQueryResult:
        """Ask a store a typed query, partition by partition. Kafka Streams: `query(StateQueryRequest)`.

        Parameters
        ----------
        store : str
        query : StateQuery
            `KeyQuery` or another one of `kstreams.state.queries`.
        partitions : collection of int, optional
            Which to ask; without it all that are here.
        bound : mapping of TopicPartition to int, optional
            Offsets of input records: a partition answers when those up to these have taken part.
        require_active : bool
            Whether standbys may not answer.
        isolation : "read_uncommitted" or "read_committed", optional
            As for `store`; Kafka Streams: `withIsolationLevel`. Standbys know only what is committed.

        Returns
        -------
        StateQueryResult
            The answer of each partition with its position, or why there is none.

        Raises
        ------
        StoreNotAvailableError
            When the application is not started or has ended.
        StateError
            When there is no store of that name.
        """
        local = self._local_stores(stale=True)
        builder = store_named(self._topology.stores, store)
        return StateQueryResult(
            local.query(builder, query, partitions, bound or {}, self._level(isolation), require_active=require_active)
        )

    def _level(self, isolation: Isolation | None) -> Isolation:
        """The isolation of a query: as it says, else as configured."""
        if isolation is None:
            configured: Isolation = self.config["default.interactive.query.isolation.level"]
            return configured
        if isolation not in get_args(Isolation):
            raise StateError(f"isolation is one of {', '.join(get_args(Isolation))}, not {isolation!r}")
        return isolation

    def committed_at_once(self, store: str, key: object, question: Callable[[Any], Any]) -> dict[int, Answer] | None:
        """What the last commit says of a key, for callers that may not wait, such as an event loop.

        Parameters
        ----------
        store : str
        key : Any
        question : callable
            Gets the store of a partition, and is to be short.

        Returns
        -------
        dict of int to Answer, or None
            By partition, up to the first one whose answer is not None, beginning with that where the key should be.
            None where it would take a wait: a partition is in another process, or is being committed.

        Raises
        ------
        StoreNotAvailableError
            When stores have been closed since.
        StateError
            When there is no store of that name.
        """
        client = self._client
        if self.state is not State.RUNNING or not isinstance(client, RunningClient):
            return None
        return self._at_once.ask(client, store, key, question)

    def woken(self, store: str, wake: Callable[[], None]) -> AbstractContextManager[bool]:
        """Inside, be woken after each commit of a partition of a store that is here, and when one goes.

        Parameters
        ----------
        store : str
        wake : callable
            Called by the thread that commits, which waits for it.

        Returns
        -------
        context manager of bool
            Whether all partitions are here, so that nothing of the store changes unnoticed.
        """
        client = self._client
        return self._at_once.woken(client, store, wake) if isinstance(client, RunningClient) else nullcontext(False)

    @property
    def is_busy(self) -> bool:
        """Whether a stream thread has records to process."""
        return any(thread.is_busy for thread in self._client.threads)

    def _local_stores(self, *, stale: bool) -> LocalStores:
        client = self._client
        answers = self.state is State.RUNNING or (stale and self.state is State.REBALANCING)
        if not answers or not isinstance(client, RunningClient):
            raise StoreNotAvailableError(f"stores answer while the application is RUNNING; it is {self.state.value}")
        return LocalStores(client.context, client.threads, client.manager.standby_tasks)

    def query_metadata_for_key(self, store: str, key: object) -> KeyQueryMetadata:
        """Where Kafka's default partitioner has put a key of a store. Kafka Streams: `queryMetadataForKey`.

        Parameters
        ----------
        store : str
        key : Any

        Raises
        ------
        StoreNotAvailableError
            When the application is not started or has ended.
        StateError
            When there is no store of that name.
        """
        holders = self.holders(store)
        builder = store_named(self._topology.stores, store)
        number = self._local_stores(stale=True).partition_of(builder)(key)
        here = holders.get(number, PartitionHolders(None, ()))
        return KeyQueryMetadata(here.active, here.standbys, number)

    def streams_metadata_for_store(self, store: str) -> list[StreamsMetadata]:
        """The processes that have partitions of a store. Kafka Streams: `streamsMetadataForStore`.

        Those count that have told where they answer (`application.server`).
        """
        active = dict[HostInfo, set[int]]()
        standby = dict[HostInfo, set[int]]()
        for number, holders in self.holders(store).items():
            for hosts, partitions in (
                (holders.standbys, standby),
                ([holders.active] if holders.active else [], active),
            ):
                for host in hosts:
                    partitions.setdefault(host, set()).add(number)
        return [
            StreamsMetadata(host, frozenset(active.get(host, ())), frozenset(standby.get(host, ())))
            for host in sorted(active.keys() | standby.keys())
        ]

    def metadata_for_all_streams_clients(self) -> list[HostInfo]:
        """Where the processes of the application answer. Kafka Streams: `metadataForAllStreamsClients`.

        Those count that have told it (`application.server`), this one among them.
        """
        return sorted(self._places().hosts())

    def holders(self, store: str) -> dict[int, PartitionHolders]:
        """Who has each partition of a store, by number; -1 for a global store, which all have."""
        return self._places().holders(store_named(self._topology.stores, store))

    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]:
        """How far the stores of this process are in their changelogs. Kafka Streams: `allLocalStorePartitionLags`."""
        return self._places().local_lags()

    def _places(self) -> StorePlaces:
        client = self._client
        if not self._application.life.is_alive() or not isinstance(client, RunningClient):
            raise StoreNotAvailableError(f"stores have places while the application runs; it is {self.state.value}")
        return StorePlaces(client.context, client.manager, client.member, client.threads)

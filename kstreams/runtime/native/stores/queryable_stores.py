"""`QueryableStores`: queries of the stores of an application, and the processes that have their partitions."""

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
from kstreams.runtime.native.stores.metadata import (
    HostInfo,
    KeyQueryMetadata,
    LagInfo,
    PartitionHosts,
    StreamsMetadata,
)
from kstreams.runtime.native.stores.nonblocking_lookups import NonblockingLookups
from kstreams.runtime.native.stores.streams_metadata_state import StreamsMetadataState
from kstreams.state.queries import StateQuery, StateQueryResult
from kstreams.state.read_only_store import Answer, Position, ReadOnlyKeyValueStore, ReadOnlyStore
from kstreams.state.store_builder import store_named
from kstreams.state.tables.sql import answer

View = TypeVar("View", bound=ReadOnlyStore)


class QueryableStores:
    """The methods of `KafkaStreams` for stores.

    Parameters
    ----------
    application : LocalApplication
    client : Client
        The running client replaces it when the application starts.
    """

    def __init__(self, application: LocalApplication, client: Client) -> None:
        self._application = application
        self._topology = application.topology
        self._client: Client | RunningClient = client
        self._lookups = NonblockingLookups(application.topology)

    @property
    def state(self) -> State:
        """The present state."""
        return self._application.lifecycle.state

    @property
    def topology(self) -> Topology:
        """The topology that the application runs."""
        return self._topology

    @property
    def config(self) -> Config:
        """The settings of the application."""
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
        """Return a store for queries. It combines all local partitions of the store, or is a global store.

        Kafka Streams: `store(StoreQueryParameters.fromNameAndType(name, type))`.

        Parameters
        ----------
        name : str
        view : type, default that of the store's kind
            `ReadOnlyKeyValueStore`, `ReadOnlyWindowStore` or another class of `kstreams.state.read_only_store`, as the
            static type of the result. Without it, the static type is `ReadOnlyKeyValueStore`.
        isolation : "read_uncommitted" or "read_committed", optional
            "read_uncommitted" includes uncommitted updates: the task reads between two batches. "read_committed" is
            the state of the last commit: the thread of the caller reads, and waits for no task. Default:
            `default.interactive.query.isolation.level`, whose default is "read_uncommitted", as in Kafka Streams.
        partition : int, optional
            The only partition to read. Kafka Streams: `withPartition`.
        stale : bool
            Whether standbys answer for partitions that are not active here, also while the application rebalances.
            Kafka Streams: `enableStaleStores`.

        Raises
        ------
        StoreNotAvailableError
            If the application is not RUNNING, or this process has no partition of the store, or not the requested one.
        StateError
            If there is no store of this name, or it is of another kind.
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
        """Return the answer of DuckDB to a SELECT. Each store is a table of its name (see `ReadOnlyStore.to_arrow`).

        The tables have the rows of the partitions in this process. The stores are read one after the other, so that
        updates in between make them inconsistent unless nothing is processed.

        Parameters
        ----------
        query : str
            Names with other characters than those of words need double quotes: `select * from "orders-per-customer"`.
        isolation : "read_uncommitted" or "read_committed", optional
            As for `store`. Reads of committed rows do not interrupt the tasks.
        as_of : datetime or int, optional
            A time (an aware datetime, or milliseconds). The tables then have only the versions that were valid at this
            time, and the windows and sessions that contain it.

        Raises
        ------
        StoreNotAvailableError
            As for `store`.
        StateError
            If DuckDB is not installed or cannot answer.
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
        """Run a typed query on each partition of a store. Kafka Streams: `query(StateQueryRequest)`.

        Parameters
        ----------
        store : str
        query : StateQuery
            `KeyQuery` or another query of `kstreams.state.queries`.
        partitions : collection of int, optional
            The partitions to read. Default: all partitions in this process.
        bound : mapping of TopicPartition to int, optional
            Offsets of input records. A partition answers only if it has processed the records up to these offsets.
        require_active : bool
            If True, standbys do not answer.
        isolation : "read_uncommitted" or "read_committed", optional
            As for `store`; Kafka Streams: `withIsolationLevel`. Standbys have committed rows only.

        Returns
        -------
        StateQueryResult
            The answer of each partition with its position, or the reason why there is none.

        Raises
        ------
        StoreNotAvailableError
            If the application is not started or has stopped.
        StateError
            If there is no store of this name.
        """
        local = self._local_stores(stale=True)
        builder = store_named(self._topology.stores, store)
        return StateQueryResult(
            local.query(builder, query, partitions, bound or {}, self._level(isolation), require_active=require_active)
        )

    def _level(self, isolation: Isolation | None) -> Isolation:
        """Return the isolation level of a query. None for the configured one."""
        if isolation is None:
            configured: Isolation = self.config["default.interactive.query.isolation.level"]
            return configured
        if isolation not in get_args(Isolation):
            raise StateError(f"isolation is one of {', '.join(get_args(Isolation))}, not {isolation!r}")
        return isolation

    def committed_nowait(self, store: str, key: object, read: Callable[[Any], Any]) -> dict[int, Answer] | None:
        """Read the committed rows of a key, for callers that must not wait, such as an event loop.

        Parameters
        ----------
        store : str
        key : Any
        read : callable
            Reads the store of a partition in a short time.

        Returns
        -------
        dict of int to Answer, or None
            The answers by partition. The first partition is that of the default partitioner, and the last one is the
            first whose answer is not None. None if a read would have to wait: a partition is in another process, or is
            being committed.

        Raises
        ------
        StoreNotAvailableError
            If stores have been closed in the meantime.
        StateError
            If there is no store of this name.
        """
        client = self._client
        if self.state is not State.RUNNING or not isinstance(client, RunningClient):
            return None
        return self._lookups.look_up(client, store, key, read)

    def commit_listener(self, store: str, on_commit: Callable[[], None]) -> AbstractContextManager[bool]:
        """Listen to the commits of the local partitions of a store during a `with` block.

        Parameters
        ----------
        store : str
        on_commit : callable
            The thread that commits calls it after each commit, and when a partition moves away, and waits for it.

        Returns
        -------
        context manager of bool
            True if all partitions of the store are in this process, so that the listener hears every commit.
        """
        client = self._client
        if not isinstance(client, RunningClient):
            return nullcontext(False)
        return self._lookups.commit_listener(client, store, on_commit)

    @property
    def is_busy(self) -> bool:
        """Whether a stream thread has records to process."""
        return any(thread.is_busy for thread in self._client.threads)

    def _local_stores(self, *, stale: bool) -> LocalStores:
        client = self._client
        is_available = self.state is State.RUNNING or (stale and self.state is State.REBALANCING)
        if not is_available or not isinstance(client, RunningClient):
            raise StoreNotAvailableError(f"stores answer while the application is RUNNING; it is {self.state.value}")
        return LocalStores(client.context, client.threads, client.manager.standby_tasks)

    def query_metadata_for_key(self, store: str, key: object) -> KeyQueryMetadata:
        """Return the partition of the default partitioner for a key, and its processes.

        Kafka Streams: `queryMetadataForKey`.

        Parameters
        ----------
        store : str
        key : Any

        Raises
        ------
        StoreNotAvailableError
            If the application is not started or has stopped.
        StateError
            If there is no store of this name.
        """
        partition_hosts = self.partition_hosts(store)
        builder = store_named(self._topology.stores, store)
        number = self._local_stores(stale=True).partition_of(builder)(key)
        hosts = partition_hosts.get(number, PartitionHosts(None, ()))
        return KeyQueryMetadata(hosts.active, hosts.standbys, number)

    def streams_metadata_for_store(self, store: str) -> list[StreamsMetadata]:
        """Return the processes that have partitions of a store. Kafka Streams: `streamsMetadataForStore`.

        Processes without `application.server` are missing.
        """
        active = dict[HostInfo, set[int]]()
        standby = dict[HostInfo, set[int]]()
        for number, hosts in self.partition_hosts(store).items():
            if hosts.active:
                active.setdefault(hosts.active, set()).add(number)
            for host in hosts.standbys:
                standby.setdefault(host, set()).add(number)
        return [
            StreamsMetadata(host, frozenset(active.get(host, ())), frozenset(standby.get(host, ())))
            for host in sorted(active.keys() | standby.keys())
        ]

    def metadata_for_all_streams_clients(self) -> list[HostInfo]:
        """Return the addresses of all processes of the application. Kafka Streams: `metadataForAllStreamsClients`.

        Processes without `application.server` are missing.
        """
        return sorted(self._metadata_state().hosts())

    def partition_hosts(self, store: str) -> dict[int, PartitionHosts]:
        """Return the processes of each partition of a store. The partition of a global store, which all have, is -1."""
        return self._metadata_state().partition_hosts(store_named(self._topology.stores, store))

    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]:
        """Return the changelog lag of the stores in this process. Kafka Streams: `allLocalStorePartitionLags`."""
        return self._metadata_state().local_lags()

    def _metadata_state(self) -> StreamsMetadataState:
        client = self._client
        if not self._application.lifecycle.is_alive() or not isinstance(client, RunningClient):
            raise StoreNotAvailableError(
                f"stores have no hosts and no lag unless the application runs; it is {self.state.value}"
            )
        return StreamsMetadataState(client.context, client.manager, client.member, client.threads)

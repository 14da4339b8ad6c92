"""`StoreQueryService`: answers `StoreQuery`s. It reads each partition at the instance that has it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from kstreams.errors import StateError
from kstreams.runtime.native.stores.metadata import HostInfo, PartitionHosts
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server.executors import BoundedExecutor, SequentialExecutor
from kstreams.server.http_error import HttpError, unavailable
from kstreams.server.limits import Limits
from kstreams.server.page import EntryCount, Page
from kstreams.server.peers import Peers
from kstreams.server.store_query import INVALID_CURSOR, Cursor, StoreQuery
from kstreams.state.queries import CountQuery, FailureReason, QueryResult, StateQuery
from kstreams.state.read_only_store import Position
from kstreams.state.store_builder import Row, RowPlace, StoreBuilder

logger = logging.getLogger(__name__)

_KEY_PARAMETERS = frozenset({"key", "limit"})  # they do not change the answer for one key


class PartitionRows(NamedTuple):
    """Rows of one partition, the instance that has read them, and the cursor of the next page."""

    rows: list[Row]
    position: dict[str, int]
    instance: str
    next: str | None


class StoreQueryService:
    """Answers queries of the stores of an application.

    Parameters
    ----------
    streams : KafkaStreams
    peers : Peers
    limits : Limits
    """

    def __init__(self, streams: KafkaStreams, peers: Peers, limits: Limits) -> None:
        self.streams = streams
        self.limits = limits
        self._peers = peers
        address = streams.config["application.server"] or ""
        self.address = HostInfo.of(address)
        self.instance = address or "this process"
        # Requests to peers have threads of their own: else instances that wait for each other could not answer.
        self.executor = BoundedExecutor(limits.concurrency)
        self._peer_executor = BoundedExecutor(limits.concurrency)
        self._scan_executor = SequentialExecutor(self.executor, lambda: streams.is_busy)

    def close(self) -> None:
        """Stop answering queries."""
        self.executor.close()
        self._peer_executor.close()

    def page_nowait(self, query: StoreQuery) -> Page | None:
        """Return the page of a query for one key; None if the caller would have to wait or to ask another instance."""
        key = query.rows.key
        if key is None or not query.parameters.keys() <= _KEY_PARAMETERS:
            return None
        return self.key_page_nowait(query.store, key)

    def key_page_nowait(self, store: StoreBuilder, key: object) -> Page | None:
        """Return the page of a key without further parameters; None as in `page_nowait`."""
        reader = store.kind.rows
        if reader is None or not reader.is_lookup:
            return None
        try:
            answers = self.streams.committed_nowait(store.name, key, lambda committed_store: committed_store.get(key))
        except StateError:
            return None
        if answers is None:
            return None
        rows = list[Row]()
        position = dict[str, int]()
        instances = dict[str, str]()
        for number, (value, offsets) in answers.items():
            if value is not None:
                rows.append(reader.row(store, key, value))
            position |= position_text(offsets)
            instances[str(number)] = self.instance
        return Page(rows, position, instances, "read_committed")

    async def get_from_peers(self, target: str, timeout_s: float) -> dict[str, bytes | None]:
        """Return the responses of the other instances to a request. None if an instance does not respond."""
        try:
            hosts = await self.executor.run(self.streams.metadata_for_all_streams_clients, timeout_s)
        except StateError:
            hosts = []
        other_hosts = [host for host in hosts if host != self.address]
        requests = (partial(self._peers.get_local, host, target, timeout_s) for host in other_hosts)
        responses = [self._peer_executor.run(request, timeout_s + 1) for request in requests]
        results = await asyncio.gather(*responses, return_exceptions=True)
        return {
            str(host): None if isinstance(result, BaseException) else result
            for host, result in zip(other_hosts, results, strict=True)
        }

    async def page(self, query: StoreQuery, deadline: float | None = None) -> Page:
        """Return the rows of a query, up to its limit.

        Parameters
        ----------
        query : StoreQuery
        deadline : float, optional
            A time of the clock of the event loop. By default, the timeout of the query holds for all its partitions
            together.

        Raises
        ------
        HttpError
            If a partition cannot answer now, or the store has no such partition.
        """
        hosts = self._partition_hosts(query)
        if query.cursor is not None and query.cursor.partition not in hosts:
            raise HttpError(400, INVALID_CURSOR)
        if deadline is None:
            deadline = asyncio.get_running_loop().time() + query.timeout_s
        if query.rows.key is not None:
            return await self._of_key(query, hosts, deadline)
        return await self._scan(query, hosts, deadline)

    async def pages(self, queries: Sequence[StoreQuery]) -> Page:
        """Return the rows of several queries as one page, whose position is the earliest of their positions."""
        merged_page = _empty_page(queries[0])
        deadline = asyncio.get_running_loop().time() + queries[0].timeout_s
        for query in queries:
            page = self.page_nowait(query) or await self.page(query, deadline)
            merged_page.rows += page.rows
            merged_page.instances |= page.instances
            for source, offset in page.position.items():
                merged_page.position[source] = min(offset, merged_page.position.get(source, offset))
        return merged_page

    async def count(self, query: StoreQuery) -> EntryCount:
        """Return the number of entries of a store.

        The partitions are counted one after the other, because there may be more partitions than threads.

        Raises
        ------
        HttpError
            If a partition cannot answer now, or the store does not count its entries.
        """
        deadline = asyncio.get_running_loop().time() + query.timeout_s
        counts = [
            await self._count(_with_remaining_time(query, deadline), number, hosts)
            for number, hosts in self._partition_hosts(query).items()
        ]
        return EntryCount(
            count=sum(partition.count for partition in counts),
            is_estimate=any(partition.is_estimate for partition in counts),
            instances={number: name for partition in counts for number, name in partition.instances.items()},
            position={source: offset for partition in counts for source, offset in partition.position.items()},
        )

    async def _count(self, query: StoreQuery, number: int, hosts: PartitionHosts) -> EntryCount:
        host = self._ordered_hosts(query, hosts)[0]
        if host is not None:
            parameters = query.count_parameters(number)
            request = partial(self._peers.get, host, query.path, parameters, query.timeout_s, EntryCount)
            return await self._peer_executor.run(request, query.timeout_s)
        result = await self.executor.run(partial(self._local_result, query, CountQuery(), number), query.timeout_s)
        is_estimate = query.store.store == "rocksdb"
        return EntryCount(result.value, is_estimate, {str(number): self.instance}, position_text(result.position))

    def partition_hosts(self, store: str) -> dict[int, PartitionHosts]:
        """Return the instances that have each partition of a store.

        Raises
        ------
        HttpError
            If the application does not run.
        """
        try:
            return self.streams.partition_hosts(store)
        except StateError as error:
            raise _not_now(store, error) from None

    def _partition_hosts(self, query: StoreQuery) -> dict[int, PartitionHosts]:
        hosts = self.partition_hosts(query.store.name)
        if query.partition is None:
            return hosts
        if query.partition not in hosts:
            raise HttpError(404, "the store has no such partition")
        return {query.partition: hosts[query.partition]}

    async def _of_key(self, query: StoreQuery, hosts: dict[int, PartitionHosts], deadline: float) -> Page:
        """Return the rows of a key in the partition of the default partitioner, else in the first one that has rows."""
        page = _empty_page(query)
        after = None if query.cursor is None else query.cursor.after
        for number in self._ordered_partitions(query, hosts):
            remaining_query = _with_remaining_time(query, deadline)
            partition_rows = await self._rows(remaining_query, number, hosts[number], after, query.limit)
            _add(page, number, partition_rows)
            if partition_rows.rows:
                page.next = partition_rows.next
                break
        return page

    def _ordered_partitions(self, query: StoreQuery, hosts: dict[int, PartitionHosts]) -> list[int]:
        if query.cursor is not None:
            return [number for number in hosts if number == query.cursor.partition]
        try:
            home = self.streams.query_metadata_for_key(query.store.name, query.rows.key).partition
        except StateError as error:
            raise _not_now(query.store.name, error) from None
        return sorted(hosts, key=lambda number: (number != home, number))

    async def _scan(self, query: StoreQuery, hosts: dict[int, PartitionHosts], deadline: float) -> Page:
        """Return the rows of one partition after the other."""
        page = _empty_page(query)
        cursor = query.cursor or Cursor(-1, None)
        remaining_partitions = sorted(number for number in hosts if number >= cursor.partition)
        for number, next_partition in zip(remaining_partitions, [*remaining_partitions[1:], None], strict=True):
            after = cursor.after if number == cursor.partition else None
            remaining_query = _with_remaining_time(query, deadline)
            limit = query.limit - len(page.rows)
            partition_rows = await self._rows(remaining_query, number, hosts[number], after, limit)
            _add(page, number, partition_rows)
            if partition_rows.next is not None:
                page.next = partition_rows.next
            elif len(page.rows) == query.limit and next_partition is not None:
                page.next = Cursor(next_partition, None).text()
            if page.next is not None:
                break
        return page

    async def _rows(
        self, query: StoreQuery, number: int, hosts: PartitionHosts, after: RowPlace | None, limit: int
    ) -> PartitionRows:
        *other_hosts, last_host = self._ordered_hosts(query, hosts)
        for host in other_hosts:
            with suppress(HttpError):
                return await self._rows_at(host, query, number, after, limit)
        return await self._rows_at(last_host, query, number, after, limit)

    async def _rows_at(
        self, host: HostInfo | None, query: StoreQuery, number: int, after: RowPlace | None, limit: int
    ) -> PartitionRows:
        """Return the rows that a host reads. None for this instance."""
        if host is None:
            read = partial(self._local_rows, query, number, after, limit)
            executor = self._scan_executor if query.rows.key is None else self.executor
            return await executor.run(read, query.timeout_s)
        parameters = query.page_parameters(number, after, limit)
        request = partial(self._peers.get, host, query.path, parameters, query.timeout_s, Page)
        page = await self._peer_executor.run(request, query.timeout_s)
        return PartitionRows(page.rows, page.position, page.instances.get(str(number), str(host)), page.next)

    def _ordered_hosts(self, query: StoreQuery, hosts: PartitionHosts) -> Sequence[HostInfo | None]:
        """Return the instances that may answer for a partition, the preferred one first. None for this instance."""
        if query.is_local or (hosts.active is not None and hosts.active == self.address):
            return [None]
        standbys = hosts.standbys if query.stale else ()
        if self.address in standbys:
            return [None]
        return [host for host in (hosts.active, *standbys) if host is not None] or [None]

    def _local_rows(self, query: StoreQuery, number: int, after: RowPlace | None, limit: int) -> PartitionRows:
        store = query.store
        reader = query.rows.reader
        # One row more than the limit tells whether there is a next page.
        result = self._local_result(query, replace(query.rows, after=after, limit=limit + 1), number)
        entries = result.value[:limit]
        next_cursor = Cursor(number, reader.place(store, *entries[-1])).text() if len(result.value) > limit else None
        rows = [reader.row(store, key, value) for key, value in entries]
        return PartitionRows(rows, position_text(result.position), self.instance, next_cursor)

    def _local_result(self, query: StoreQuery, state_query: StateQuery, number: int) -> QueryResult:
        """Return the answer of a partition in this process."""
        name = query.store.name
        try:
            result = self.streams.query(
                name,
                state_query,
                partitions=[number],
                require_active=not query.stale,
                isolation=query.isolation,
            ).partitions[number]
        except StateError as error:
            raise _not_now(name, error) from None
        if result.failure in _UNAVAILABLE:
            raise unavailable()
        if result.failure is FailureReason.UNKNOWN_QUERY_TYPE:
            raise HttpError(400, f"a {query.store.kind.name} store does not count its entries")
        if result.failure is not None:
            logger.error("the partition %d of the store %s could not be read: %s", number, name, result.message)
            raise HttpError(500, "the store could not be read: see the log of the application")
        return result


_UNAVAILABLE = (FailureReason.NOT_PRESENT, FailureReason.NOT_ACTIVE, FailureReason.DOES_NOT_EXIST)


def position_text(position: Position) -> dict[str, int]:
    """Return a position with texts as keys, for JSON."""
    return {str(source): offset for source, offset in position.items()}


def _empty_page(query: StoreQuery) -> Page:
    return Page([], {}, {}, query.isolation)


def _with_remaining_time(query: StoreQuery, deadline: float) -> StoreQuery:
    """Return the query with the remaining time as its timeout; raises HttpError if no time remains."""
    remaining_seconds = deadline - asyncio.get_running_loop().time()
    if remaining_seconds <= 0:
        raise HttpError(504, "there was no answer in time")
    return replace(query, timeout_s=remaining_seconds)


def _add(page: Page, number: int, partition_rows: PartitionRows) -> None:
    page.rows += partition_rows.rows
    page.position |= partition_rows.position
    page.instances[str(number)] = partition_rows.instance


def _not_now(store: str, error: StateError) -> HttpError:
    logger.info("the store %s cannot answer: %s", store, error)
    return unavailable("the application does not answer now: ask again")

"""`StoreQueryService`: answers `StoreQuery`s, partition by partition, from whichever instance has the rows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from kstreams.errors import StateError
from kstreams.runtime.native.stores.metadata import HostInfo, PartitionHolders
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server.limits import Limits
from kstreams.server.page import EntryCount, Page
from kstreams.server.peers import Peers
from kstreams.server.refusal import Refusal, moving
from kstreams.server.store_query import NO_CURSOR, Cursor, StoreQuery
from kstreams.server.work import SequentialWork, Work
from kstreams.state.queries import CountQuery, FailureReason, QueryResult, StateQuery
from kstreams.state.read_only_store import Position
from kstreams.state.store_builder import Row, RowPlace, StoreBuilder

logger = logging.getLogger(__name__)

_KEY_PARAMETERS = frozenset({"key", "limit"})  # they do not change the answer for one key


class PartitionRows(NamedTuple):
    """Rows of one partition."""

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
        # Apart, so that instances that wait for each other have threads left to answer.
        self.work = Work(limits.concurrency)
        self._waits = Work(limits.concurrency)
        self._scans = SequentialWork(self.work, lambda: streams.is_busy)

    def close(self) -> None:
        """Take no more queries."""
        self.work.close()
        self._waits.close()

    def at_once(self, query: StoreQuery) -> Page | None:
        """Return the page of one key; None if that takes a wait or another instance."""
        key = query.rows.key
        if key is None or not query.parameters.keys() <= _KEY_PARAMETERS:
            return None
        return self.key_at_once(query.store, key)

    def key_at_once(self, store: StoreBuilder, key: object) -> Page | None:
        """Return the page of a key of a store without parameters; None as for `at_once`."""
        reader = store.kind.rows
        if reader is None or not reader.is_lookup:
            return None
        try:
            answers = self.streams.committed_at_once(store.name, key, lambda committed_store: committed_store.get(key))
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

    async def others(self, target: str, seconds: float) -> dict[str, bytes | None]:
        """Return the response of each other instance to a request, by instance. None for one that does not respond."""
        try:
            hosts = await self.work.do(self.streams.metadata_for_all_streams_clients, seconds)
        except StateError:
            hosts = []
        other_hosts = [host for host in hosts if host != self.address]
        answers = [
            self._waits.do(partial(self._peers.body, host, target, seconds), seconds + 1) for host in other_hosts
        ]
        results = await asyncio.gather(*answers, return_exceptions=True)
        return {
            str(host): None if isinstance(result, BaseException) else result
            for host, result in zip(other_hosts, results, strict=True)
        }

    async def page(self, query: StoreQuery, until: float | None = None) -> Page:
        """Return the rows of a query, up to its limit, read before `until` by the clock of the loop.

        Without `until`, the timeout of the query holds for all its partitions together.

        Raises
        ------
        Refusal
            When a partition gives none now, or the store has no such partition.
        """
        holders = self._holders(query)
        if query.cursor is not None and query.cursor.partition not in holders:
            raise Refusal(400, NO_CURSOR)
        until = asyncio.get_running_loop().time() + query.timeout_s if until is None else until
        if query.rows.key is not None:
            return await self._of_key(query, holders, until)
        return await self._scan(query, holders, until)

    async def pages(self, queries: Sequence[StoreQuery]) -> Page:
        """Return the rows of several queries as one page, whose position is the earliest of their positions."""
        rows = _no_rows(queries[0])
        until = asyncio.get_running_loop().time() + queries[0].timeout_s
        for query in queries:
            page = self.at_once(query) or await self.page(query, until)
            rows.rows += page.rows
            rows.instances |= page.instances
            for source, offset in page.position.items():
                rows.position[source] = min(offset, rows.position.get(source, offset))
        return rows

    async def count(self, query: StoreQuery) -> EntryCount:
        """Return the number of entries of a store. The partitions follow one another: there may be more than threads.

        Raises
        ------
        Refusal
            When a partition gives no answer now, or the store does not know how many it has.
        """
        until = asyncio.get_running_loop().time() + query.timeout_s
        holders = self._holders(query)
        counts = [await self._counted(_until(query, until), number, host) for number, host in holders.items()]
        instances = {number: name for host in counts for number, name in host.instances.items()}
        position = {source: offset for host in counts for source, offset in host.position.items()}
        return EntryCount(
            sum(host.count for host in counts), any(host.is_estimate for host in counts), instances, position
        )

    async def _counted(self, query: StoreQuery, number: int, holders: PartitionHolders) -> EntryCount:
        host = self._hosts(query, holders)[0]
        if host is not None:
            request = query.count_parameters(number)
            ask = partial(self._peers.answer, host, query.path, request, query.timeout_s, EntryCount)
            return await self._waits.do(ask, query.timeout_s)
        here = await self.work.do(partial(self._local, query, CountQuery(), number), query.timeout_s)
        is_estimate = query.store.store == "rocksdb"
        return EntryCount(here.value, is_estimate, {str(number): self.instance}, position_text(here.position))

    def holders(self, store: str) -> dict[int, PartitionHolders]:
        """Return the holders of each partition of a store.

        Raises
        ------
        Refusal
            While the application does not run.
        """
        try:
            return self.streams.holders(store)
        except StateError as error:
            raise _not_now(store, error) from None

    def _holders(self, query: StoreQuery) -> dict[int, PartitionHolders]:
        holders = self.holders(query.store.name)
        if query.partition is None:
            return holders
        if query.partition not in holders:
            raise Refusal(404, "the store has no such partition")
        return {query.partition: holders[query.partition]}

    async def _of_key(self, query: StoreQuery, holders: dict[int, PartitionHolders], until: float) -> Page:
        """Return the rows in the home partition of a key; if it has none, those of the first one that has some."""
        rows = _no_rows(query)
        cursor = query.cursor
        for number in self._order(query, holders):
            after = None if cursor is None else cursor.after
            answer = await self._rows(_until(query, until), number, holders[number], after, query.limit)
            _add(rows, number, answer)
            if answer.rows:
                rows.next = answer.next
                break
        return rows

    def _order(self, query: StoreQuery, holders: dict[int, PartitionHolders]) -> list[int]:
        if query.cursor is not None:
            return [number for number in holders if number == query.cursor.partition]
        try:
            home = self.streams.query_metadata_for_key(query.store.name, query.rows.key).partition
        except StateError as error:
            raise _not_now(query.store.name, error) from None
        return sorted(holders, key=lambda number: (number != home, number))

    async def _scan(self, query: StoreQuery, holders: dict[int, PartitionHolders], until: float) -> Page:
        """Return the rows of one partition after the other."""
        rows = _no_rows(query)
        cursor = query.cursor or Cursor(-1, None)
        remaining_partitions = sorted(number for number in holders if number >= cursor.partition)
        for number, following in zip(remaining_partitions, [*remaining_partitions[1:], None], strict=True):
            after = cursor.after if number == cursor.partition else None
            most = query.limit - len(rows.rows)
            answer = await self._rows(_until(query, until), number, holders[number], after, most)
            _add(rows, number, answer)
            if answer.next is not None:
                rows.next = answer.next
            elif len(rows.rows) == query.limit and following is not None:
                rows.next = Cursor(following, None).text()
            if rows.next is not None:
                break
        return rows

    async def _rows(
        self, query: StoreQuery, number: int, holders: PartitionHolders, after: RowPlace | None, most: int
    ) -> PartitionRows:
        *other_hosts, last = self._hosts(query, holders)
        for host in other_hosts:
            with suppress(Refusal):
                return await self._rows_of(query, number, host, after, most)
        return await self._rows_of(query, number, last, after, most)

    async def _rows_of(
        self, query: StoreQuery, number: int, host: HostInfo | None, after: RowPlace | None, most: int
    ) -> PartitionRows:
        if host is None:
            find = partial(self._local_rows, query, number, after, most)
            ask = self.work.do if query.rows.key is not None else self._scans.do
            return await ask(find, query.timeout_s)
        request = query.page_parameters(number, after, most)
        ask_peer = partial(self._peers.answer, host, query.path, request, query.timeout_s, Page)
        page = await self._waits.do(ask_peer, query.timeout_s)
        return PartitionRows(page.rows, page.position, page.instances.get(str(number), str(host)), page.next)

    def _hosts(self, query: StoreQuery, holders: PartitionHolders) -> Sequence[HostInfo | None]:
        """Return the instances that have a partition, the preferred one first. None for this instance."""
        if query.is_local or (holders.active is not None and holders.active == self.address):
            return [None]
        standbys = holders.standbys if query.stale else ()
        if self.address in standbys:
            return [None]
        return [host for host in (holders.active, *standbys) if host is not None] or [None]

    def _local_rows(self, query: StoreQuery, number: int, after: RowPlace | None, most: int) -> PartitionRows:
        store = query.store
        reader = query.rows.reader
        result = self._local(query, replace(query.rows, after=after, limit=most + 1), number)
        entries = result.value[:most]
        next_cursor = Cursor(number, reader.place(store, *entries[-1])).text() if len(result.value) > most else None
        rows = [reader.row(store, key, value) for key, value in entries]
        return PartitionRows(rows, position_text(result.position), self.instance, next_cursor)

    def _local(self, query: StoreQuery, state_query: StateQuery, number: int) -> QueryResult:
        """Return the answer of a partition in this process."""
        name = query.store.name
        stale = query.stale
        isolation = query.isolation
        try:
            result = self.streams.query(
                name, state_query, partitions=[number], require_active=not stale, isolation=isolation
            ).partitions[number]
        except StateError as error:
            raise _not_now(name, error) from None
        if result.failure in _MOVING:
            raise moving()
        if result.failure is FailureReason.UNKNOWN_QUERY_TYPE:
            raise Refusal(400, f"a {query.store.kind.name} store cannot be asked so")
        if result.failure is not None:
            logger.error("the store %s, partition %d: %s", name, number, result.message)
            raise Refusal(500, "the store could not be read; the log of the application says why")
        return result


_MOVING = (FailureReason.NOT_PRESENT, FailureReason.NOT_ACTIVE, FailureReason.DOES_NOT_EXIST)


def position_text(position: Position) -> dict[str, int]:
    """Return a position in a form that JSON can hold."""
    return {str(source): offset for source, offset in position.items()}


def _no_rows(query: StoreQuery) -> Page:
    return Page([], {}, {}, query.isolation)


def _until(query: StoreQuery, until: float) -> StoreQuery:
    """Return the query with the time that remains; raises Refusal if none does."""
    remaining_seconds = until - asyncio.get_running_loop().time()
    if remaining_seconds <= 0:
        raise Refusal(504, "there was no answer in time")
    return replace(query, timeout_s=remaining_seconds)


def _add(page: Page, number: int, answer: PartitionRows) -> None:
    page.rows += answer.rows
    page.position |= answer.position
    page.instances[str(number)] = answer.instance


def _not_now(store: str, error: StateError) -> Refusal:
    logger.info("no answer of the store %s: %s", store, error)
    return moving("the application does not answer now: ask again")

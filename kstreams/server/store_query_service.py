"""`StoreQueryService`: gets the rows of a question, partition by partition, from whichever instance has them."""

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
from kstreams.server.readings import READINGS, CountQuery, Row, RowPlace, RowsQuery
from kstreams.server.refusal import Refusal, moving
from kstreams.server.store_query import NO_CURSOR, Cursor, StoreQuery
from kstreams.server.work import SequentialWork, Work
from kstreams.state.api import StoreBuilder
from kstreams.state.queries import FailureReason, QueryResult, StateQuery
from kstreams.state.read_only_store import Position

logger = logging.getLogger(__name__)

_OF_ONE_KEY = frozenset({"key", "limit"})  # parameters that change nothing of its answer


class PartitionRows(NamedTuple):
    """What one partition answers."""

    rows: list[Row]
    position: dict[str, int]
    instance: str
    next: str | None


class StoreQueryService:
    """Asks the stores of an application.

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
        """Answer no more."""
        self.work.close()
        self._waits.close()

    def at_once(self, question: StoreQuery) -> Page | None:
        """The page of a key, where that needs neither a wait nor another instance."""
        key = question.asked.key
        return (
            None if key is None or not question.given.keys() <= _OF_ONE_KEY else self.key_at_once(question.store, key)
        )

    def key_at_once(self, store: StoreBuilder, key: object) -> Page | None:
        """The same for a key of a store, asked for without parameters."""
        reading = READINGS.get(store.kind.name)
        if reading is None or not reading.is_point:
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
                rows.append(reading.row(store, key, value))
            position |= position_text(offsets)
            instances[str(number)] = self.instance
        return Page(rows, position, instances, "read_committed")

    async def others(self, target: str, seconds: float) -> dict[str, bytes | None]:
        """What each other instance answers at an address, by instance; None where one gives no answer now."""
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

    async def page(self, question: StoreQuery, until: float | None = None) -> Page:
        """The rows of a question, up to its limit; its time, or that of the loop until then, is for all partitions.

        Raises
        ------
        Refusal
            When a partition gives none now, or the store has no such partition.
        """
        holders = self._holders(question)
        if question.cursor is not None and question.cursor.partition not in holders:
            raise Refusal(400, NO_CURSOR)
        until = asyncio.get_running_loop().time() + question.seconds if until is None else until
        if question.asked.key is not None:
            return await self._of_key(question, holders, until)
        return await self._scan(question, holders, until)

    async def pages(self, questions: Sequence[StoreQuery]) -> Page:
        """The rows of several questions as one page, which stands for what all of them stand for."""
        rows = _no_rows(questions[0])
        until = asyncio.get_running_loop().time() + questions[0].seconds
        for question in questions:
            page = self.at_once(question) or await self.page(question, until)
            rows.rows += page.rows
            rows.instances |= page.instances
            for source, offset in page.position.items():
                rows.position[source] = min(offset, rows.position.get(source, offset))
        return rows

    async def count(self, question: StoreQuery) -> EntryCount:
        """How many entries a store has; of all its partitions, one after the other: there may be more than threads.

        Raises
        ------
        Refusal
            When a partition gives no answer now, or the store does not know how many it has.
        """
        until = asyncio.get_running_loop().time() + question.seconds
        holders = self._holders(question)
        counts = [await self._counted(_until(question, until), number, host) for number, host in holders.items()]
        instances = {number: name for host in counts for number, name in host.instances.items()}
        position = {source: offset for host in counts for source, offset in host.position.items()}
        return EntryCount(
            sum(host.count for host in counts), any(host.is_estimate for host in counts), instances, position
        )

    async def _counted(self, question: StoreQuery, number: int, holders: PartitionHolders) -> EntryCount:
        host = self._hosts(question, holders)[0]
        if host is not None:
            request = question.of_partition_alone(number)
            ask = partial(self._peers.answer, host, question.path, request, question.seconds, EntryCount)
            return await self._waits.do(ask, question.seconds)
        here = await self.work.do(partial(self._local, question, CountQuery(), number), question.seconds)
        is_estimate = question.store.store == "rocksdb"
        return EntryCount(here.value, is_estimate, {str(number): self.instance}, position_text(here.position))

    def holders(self, store: str) -> dict[int, PartitionHolders]:
        """Who has each partition of a store.

        Raises
        ------
        Refusal
            While the application does not run.
        """
        try:
            return self.streams.holders(store)
        except StateError as error:
            raise _not_now(store, error) from None

    def _holders(self, question: StoreQuery) -> dict[int, PartitionHolders]:
        holders = self.holders(question.store.name)
        if question.partition is None:
            return holders
        if question.partition not in holders:
            raise Refusal(404, "the store has no such partition")
        return {question.partition: holders[question.partition]}

    async def _of_key(self, question: StoreQuery, holders: dict[int, PartitionHolders], until: float) -> Page:
        """Of the partition where the key should be; where it has nothing, of the first other one that has."""
        rows = _no_rows(question)
        cursor = question.cursor
        for number in self._order(question, holders):
            after = None if cursor is None else cursor.after
            answer = await self._rows(_until(question, until), number, holders[number], after, question.limit)
            _add(rows, number, answer)
            if answer.rows:
                rows.next = answer.next
                break
        return rows

    def _order(self, question: StoreQuery, holders: dict[int, PartitionHolders]) -> list[int]:
        if question.cursor is not None:
            return [number for number in holders if number == question.cursor.partition]
        try:
            home = self.streams.query_metadata_for_key(question.store.name, question.asked.key).partition
        except StateError as error:
            raise _not_now(question.store.name, error) from None
        return sorted(holders, key=lambda number: (number != home, number))

    async def _scan(self, question: StoreQuery, holders: dict[int, PartitionHolders], until: float) -> Page:
        """Of one partition after the other."""
        rows = _no_rows(question)
        cursor = question.cursor or Cursor(-1, None)
        remaining_partitions = sorted(number for number in holders if number >= cursor.partition)
        for number, following in zip(remaining_partitions, [*remaining_partitions[1:], None], strict=True):
            after = cursor.after if number == cursor.partition else None
            most = question.limit - len(rows.rows)
            answer = await self._rows(_until(question, until), number, holders[number], after, most)
            _add(rows, number, answer)
            if answer.next is not None:
                rows.next = answer.next
            elif len(rows.rows) == question.limit and following is not None:
                rows.next = Cursor(following, None).text()
            if rows.next is not None:
                break
        return rows

    async def _rows(
        self, question: StoreQuery, number: int, holders: PartitionHolders, after: RowPlace | None, most: int
    ) -> PartitionRows:
        *other_hosts, last = self._hosts(question, holders)
        for host in other_hosts:
            with suppress(Refusal):
                return await self._rows_of(question, number, host, after, most)
        return await self._rows_of(question, number, last, after, most)

    async def _rows_of(
        self, question: StoreQuery, number: int, host: HostInfo | None, after: RowPlace | None, most: int
    ) -> PartitionRows:
        if host is None:
            find = partial(self._local_rows, question, number, after, most)
            ask = self.work.do if question.asked.key is not None else self._scans.do
            return await ask(find, question.seconds)
        request = question.of_partition(number, after, most)
        ask_peer = partial(self._peers.answer, host, question.path, request, question.seconds, Page)
        page = await self._waits.do(ask_peer, question.seconds)
        return PartitionRows(page.rows, page.position, page.instances.get(str(number), str(host)), page.next)

    def _hosts(self, question: StoreQuery, holders: PartitionHolders) -> Sequence[HostInfo | None]:
        """Which instances to ask, one where the other has no answer; None for this one."""
        if question.is_local or (holders.active is not None and holders.active == self.address):
            return [None]
        standbys = holders.standbys if question.stale else ()
        if self.address in standbys:
            return [None]
        return [host for host in (holders.active, *standbys) if host is not None] or [None]

    def _local_rows(self, question: StoreQuery, number: int, after: RowPlace | None, most: int) -> PartitionRows:
        reading = question.reading
        store = question.store
        find = reading.scan if question.asked.key is None else reading.by_key
        if find is None:
            raise StateError(f"stores of the kind {store.kind.name} have no such read")
        result = self._local(question, RowsQuery(find, question.asked, after, most + 1, (store.kind.name,)), number)
        entries = result.value[:most]
        more = Cursor(number, reading.place(store, *entries[-1])).text() if len(result.value) > most else None
        rows = [reading.row(store, key, value) for key, value in entries]
        return PartitionRows(rows, position_text(result.position), self.instance, more)

    def _local(self, question: StoreQuery, query: StateQuery, number: int) -> QueryResult:
        """The answer of a partition in this process."""
        name = question.store.name
        stale = question.stale
        isolation = question.isolation
        try:
            result = self.streams.query(
                name, query, partitions=[number], require_active=not stale, isolation=isolation
            ).partitions[number]
        except StateError as error:
            raise _not_now(name, error) from None
        if result.failure in _MOVING:
            raise moving()
        if result.failure is FailureReason.UNKNOWN_QUERY_TYPE:
            raise Refusal(400, f"a {question.store.kind.name} store cannot be asked so")
        if result.failure is not None:
            logger.error("the store %s, partition %d: %s", name, number, result.message)
            raise Refusal(500, "the store could not be read; the log of the application says why")
        return result


_MOVING = (FailureReason.NOT_PRESENT, FailureReason.NOT_ACTIVE, FailureReason.DOES_NOT_EXIST)


def position_text(position: Position) -> dict[str, int]:
    """A position as JSON can hold it."""
    return {str(source): offset for source, offset in position.items()}


def _no_rows(question: StoreQuery) -> Page:
    return Page([], {}, {}, question.isolation)


def _until(question: StoreQuery, until: float) -> StoreQuery:
    """The same with the time that is left; raises Refusal where none is."""
    remaining_seconds = until - asyncio.get_running_loop().time()
    if remaining_seconds <= 0:
        raise Refusal(504, "there was no answer in time")
    return replace(question, seconds=remaining_seconds)


def _add(page: Page, number: int, answer: PartitionRows) -> None:
    page.rows += answer.rows
    page.position |= answer.position
    page.instances[str(number)] = answer.instance


def _not_now(store: str, error: StateError) -> Refusal:
    logger.info("no answer of the store %s: %s", store, error)
    return moving("the application does not answer now: ask again")

"""`Watch`: a stream of server-sent events for rows that change with commits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kstreams.server.http_error import HttpError
from kstreams.server.limits import Limits
from kstreams.server.page import Page
from kstreams.server.store_query import StoreQuery
from kstreams.server.store_query_service import StoreQueryService
from kstreams.state.store_builder import Row

logger = logging.getLogger(__name__)

EVENTS = "text/event-stream"
_KEEP_ALIVE = b":\n\n"  # a comment in an event stream, which clients ignore
_MAX_WAIT_S = 2.0
"""The longest wait for a commit. A read after it detects that the partitions have moved."""


class Watch(Response):
    """A stream of events. It reads the rows after each commit.

    The event `row` has a new or changed row, `gone` the identity of a row that no longer exists. If the rows no longer
    fit in one page, `error` is the last event.

    The server stores the rows that it has sent and no queue of events: several changes during a slow write become one
    event. A client that does not read an event in time is disconnected.

    Parameters
    ----------
    service : StoreQueryService
    query : StoreQuery
    first_page : Page
        The present rows.
    on_end : callable
        Called once when the stream ends.
    """

    media_type = EVENTS

    def __init__(
        self, service: StoreQueryService, query: StoreQuery, first_page: Page, on_end: Callable[[], None]
    ) -> None:
        super().__init__(None, media_type=EVENTS)
        self._service = service
        self._query = query
        self._on_end = on_end
        self._first_page = first_page
        self._limits = service.limits
        self._last_sent_rows: dict[bytes, Row] = {}
        self._position: dict[str, int] = {}
        self._last_sent_s = 0.0
        self._has_ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects or is too slow."""
        headers = [header for header in self.raw_headers if header[0] != b"content-length"]
        tasks = list[asyncio.Future[None]]()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            tasks += [asyncio.ensure_future(self._send_events(send)), asyncio.ensure_future(_disconnected(receive))]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._has_ended = True
            self._on_end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_events(self, send: Send) -> None:
        store = self._query.store.name
        try:
            await self._send_all(send, self._limits)
        except TimeoutError:
            logger.info("a watch of %s ends: the client reads no more events", store)
        except Exception as error:
            logger.error("a watch of %s failed", store, exc_info=error)

    async def _send_all(self, send: Send, limits: Limits) -> None:
        loop = asyncio.get_running_loop()
        commit = asyncio.Event()
        store = self._query.store.name
        await self._send_page(self._first_page, send, limits)
        while not self._has_ended:  # Python 3.11 can lose a cancellation in `wait_for`
            commit.clear()
            read_s = loop.time()
            with self._service.streams.commit_listener(store, partial(_notify, loop, commit)) as hears_every_commit:
                await self._send_page(await self._read_page(), send, limits)
                if self._has_ended:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(commit.wait(), self._max_wait_s(hears_every_commit))
            await asyncio.sleep(read_s + limits.poll_interval_s - loop.time())

    def _max_wait_s(self, hears_every_commit: bool) -> float:
        """Return the longest wait for a commit. This instance does not hear commits of other instances."""
        return min(_MAX_WAIT_S, self._limits.keep_alive_s) if hears_every_commit else self._limits.poll_interval_s

    async def _send_page(self, page: Page | None, send: Send, limits: Limits) -> None:
        """Send the events of a page.

        A page that has a next one ends the watch: the watch cannot detect which of the other rows change.
        """
        if page is None:
            return
        is_last = page.next is not None
        events = _event("error", {"error": too_many_rows(self._query)}) if is_last else self.events(page)
        now_s = asyncio.get_running_loop().time()
        if not events and now_s - self._last_sent_s >= limits.keep_alive_s:
            events = _KEEP_ALIVE
        if events:
            self._last_sent_s = now_s
            message = {"type": "http.response.body", "body": events, "more_body": not is_last}
            await asyncio.wait_for(send(message), limits.write_s)
        self._has_ended = self._has_ended or is_last

    async def _read_page(self) -> Page | None:
        """Return the present rows; None while no instance can answer."""
        try:
            return self._service.page_nowait(self._query) or await self._service.page(self._query)
        except HttpError as error:
            logger.debug("a watch of %s continues later: %s", self._query.store.name, error)
            return None

    def events(self, page: Page) -> bytes:
        """Encode the rows that differ from the last page. A page with an earlier position yields nothing."""
        if any(page.position.get(source, offset) < offset for source, offset in self._position.items()):
            return b""
        rows = {msgspec.json.encode(self._identity(row), enc_hook=str): row for row in page.rows}
        last_sent_rows = self._last_sent_rows
        changed_rows = [row for identity, row in rows.items() if last_sent_rows.get(identity) != row]
        removed_rows = [self._identity(row) for identity, row in last_sent_rows.items() if identity not in rows]
        self._last_sent_rows = rows
        self._position = self._position | page.position
        events = [*(("row", row) for row in changed_rows), *(("gone", row) for row in removed_rows)]
        return b"".join(_event(name, {**row, "position": page.position}) for name, row in events)

    def _identity(self, row: Row) -> Row:
        return {column: row[column] for column in self._query.rows.reader.identity}


def too_many_rows(query: StoreQuery) -> str:
    """Return the reason why a watch is refused or ends."""
    return f"the watch has more than {query.limit} rows: watch a key or a smaller range"


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data, enc_hook=str))


async def _disconnected(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _notify(loop: asyncio.AbstractEventLoop, commit: asyncio.Event) -> None:
    """Set the event from the thread that commits."""
    with suppress(RuntimeError):  # the loop may have ended, which must not end the thread that commits
        loop.call_soon_threadsafe(commit.set)

"""`Watch`: server-sent events of rows as they change with commits."""

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

from kstreams.server.limits import Limits
from kstreams.server.page import Page
from kstreams.server.refusal import Refusal
from kstreams.server.store_query import StoreQuery
from kstreams.server.store_query_service import StoreQueryService
from kstreams.state.store_builder import Row

logger = logging.getLogger(__name__)

EVENTS = "text/event-stream"
_NO_NEWS = b":\n\n"  # a comment
_LONGEST_S = 2.0  # without a commit, after which it is looked whether there is an answer still


class Watch(Response):
    """Looks after each commit, and sends what differs: `row` for a new or changed row, `gone` for one that is no more.

    When there are more rows than a page has, `error` is the last event.

    Nothing is kept for a reader but the rows that it has: what changes while it reads slowly comes as one change, and
    one that does not take an event in time is cut off.

    Parameters
    ----------
    service : StoreQueryService
    query : StoreQuery
    first : Page
        The rows now.
    on_end : callable
    """

    media_type = EVENTS

    def __init__(self, service: StoreQueryService, query: StoreQuery, first: Page, on_end: Callable[[], None]) -> None:
        super().__init__(None, media_type=EVENTS)
        self._service = service
        self._query = query
        self._on_end = on_end
        self._first = first
        self._limits = service.limits
        self._known: dict[bytes, Row] = {}
        self._position: dict[str, int] = {}
        self._told_at = 0.0
        self._has_ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the reader goes, or is too slow."""
        headers = [header for header in self.raw_headers if header[0] != b"content-length"]
        tasks = list[asyncio.Future[None]]()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            tasks += [asyncio.ensure_future(self._send_events(send)), asyncio.ensure_future(_left(receive))]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._has_ended = True
            self._on_end()
            for task in tasks:  # also where this request is cancelled
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_events(self, send: Send) -> None:
        store = self._query.store.name
        try:
            await self._send_all(send, self._limits)
        except TimeoutError:
            logger.info("a watch of %s ends: its reader takes no more events", store)
        except Exception as error:
            logger.error("a watch of %s failed", store, exc_info=error)

    async def _send_all(self, send: Send, limits: Limits) -> None:
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        name = self._query.store.name
        await self._tell(self._first, send, limits)
        while not self._has_ended:  # Python 3.11 can lose a cancellation in `wait_for`
            woken.clear()
            looked = loop.time()
            with self._service.streams.woken(name, partial(_wake, loop, woken)) as is_whole:
                await self._tell(await self._look(), send, limits)
                if self._has_ended:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), self._longest_wait(is_whole))
            await asyncio.sleep(looked + limits.look_s - loop.time())

    def _longest_wait(self, is_whole: bool) -> float:
        """Until the next look where no commit wakes it; those of other instances do not."""
        return min(_LONGEST_S, self._limits.silence_s) if is_whole else self._limits.look_s

    async def _tell(self, page: Page | None, send: Send, limits: Limits) -> None:
        """Send how a page differs; one that is not whole ends the watch: nobody knows whether the rest is there."""
        if page is None:
            return
        is_last = page.next is not None
        events = _event("error", {"error": too_many(self._query)}) if is_last else self.events(page)
        now = asyncio.get_running_loop().time()
        if not events and now - self._told_at >= limits.silence_s:
            events = _NO_NEWS
        if events:
            self._told_at = now
            message = {"type": "http.response.body", "body": events, "more_body": not is_last}
            await asyncio.wait_for(send(message), limits.write_s)
        self._has_ended = self._has_ended or is_last

    async def _look(self) -> Page | None:
        """The rows now; None while nobody has them."""
        try:
            return self._service.at_once(self._query) or await self._service.page(self._query)
        except Refusal as refusal:
            logger.debug("a watch of %s goes on later: %s", self._query.store.name, refusal)
            return None

    def events(self, page: Page) -> bytes:
        """What to send of a page: how it differs from the one before; nothing for one that stands for less."""
        if any(page.position.get(source, offset) < offset for source, offset in self._position.items()):
            return b""
        rows = {msgspec.json.encode(self._identity(row), enc_hook=str): row for row in page.rows}
        changed = [row for place, row in rows.items() if self._known.get(place) != row]
        gone = [self._identity(row) for place, row in self._known.items() if place not in rows]
        self._known = rows
        self._position = self._position | page.position
        events = [*(("row", row) for row in changed), *(("gone", row) for row in gone)]
        return b"".join(_event(name, {**row, "position": page.position}) for name, row in events)

    def _identity(self, row: Row) -> Row:
        return {column: row[column] for column in self._query.rows.reader.identity}


def too_many(query: StoreQuery) -> str:
    """Why rows are not watched, or not any longer."""
    return f"more than {query.limit} rows are watched: name a key or a shorter range"


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data, enc_hook=str))


async def _left(receive: Receive) -> None:
    """Wait until the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _wake(loop: asyncio.AbstractEventLoop, woken: asyncio.Event) -> None:
    """For the thread that commits, which the end of the loop is not to end."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(woken.set)

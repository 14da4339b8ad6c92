"""Server-sent events: each event is read once, whatever interrupts the stream."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

import kstreams as ks
from kstreams.connectors import Source
from kstreams.connectors.http.events import EventParser, ServerSentEvent
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from kstreams.testing.connectors import Order, order_of
from tests.connectors.http.serving import free_port, reset, serving
from tests.connectors.running import ids_in, log_with_topics, running, wait_until, worker_of
from tests.support.examples import examples


class EventServer:
    """Sends the orders from `Last-Event-ID` on as events, and breaks each connection at a random place."""

    def __init__(self, count: int, breaks: random.Random) -> None:
        self.count = count
        self.first_ids: list[str | None] = []
        self._breaks = breaks

    async def handle(self, request: Request) -> Response:
        last_id = request.headers.get("last-event-id")
        self.first_ids.append(last_id)
        if self._breaks.random() < 0.2:
            return Response(status_code=503)
        return StreamingResponse(self._events(request, -1 if last_id is None else int(last_id)), 200, None, SSE)

    async def _events(self, request: Request, last: int) -> AsyncIterator[bytes]:
        yield b": welcome\nretry: 10\n\n"
        for number in range(last + 1, self.count):
            if number % 7 == 0:
                yield b"event: heartbeat\ndata: {}\n\n"
            text = f"event: order\nid: {number}\ndata: {JSONResponse(order(number)).body.decode()}\n\n".encode()
            fate = self._breaks.random()
            if fate < 0.02:
                return
            if fate < 0.04:
                yield text[: len(text) // 2]
                reset(request)
                return
            yield text
        await asyncio.sleep(60)


SSE = "text/event-stream"


def order(number: int) -> dict[str, object]:
    value = order_of(number)
    return {"id": value.id, "name": value.name, "amount": value.amount}


def test_each_event_is_read_once_through_interruptions(tmp_path: Path) -> None:
    server = EventServer(200, random.Random(3))
    with serving(server.handle) as http, log_with_topics(tmp_path) as log:
        with running(worker_of(log, ks.sources.sse(http.url, Order, key="id", events=["order"]))):
            wait_until(lambda: len(ids_in(log)) >= 200)
        assert ids_in(log) == list(range(200))
    assert len(server.first_ids) > 3
    assert server.first_ids[0] is None


def test_a_stopped_application_continues_after_the_last_event(tmp_path: Path) -> None:
    server = EventServer(50, random.Random(4))
    with serving(server.handle) as http, log_with_topics(tmp_path) as log:
        for count in (50, 90):
            server.count = count
            with running(worker_of(log, ks.sources.sse(http.url, Order, key="id", events=["order"]))):
                wait_until(lambda count=count: len(ids_in(log)) >= count)  # type: ignore[misc]
            assert ids_in(log) == list(range(count))


def test_the_data_are_taken_as_they_are_for_str() -> None:
    async def handle(request: Request) -> Response:
        return StreamingResponse(stream(), media_type=SSE)

    async def stream() -> AsyncIterator[bytes]:
        yield "data: ü\ndata: 2\n\ndata\n\nid: 9\ndata:  c\r\n\r\n".encode()
        await asyncio.sleep(60)

    with serving(handle) as http:
        batches = read_some(ks.sources.sse(http.url, str))
    assert [value for values, _ in batches for value in values] == ["ü\n2", "", " c"]
    assert batches[-1][1] == "9"


def test_an_answer_that_is_no_stream_of_events_is_an_error() -> None:
    async def page(request: Request) -> Response:
        return JSONResponse({"a": 1})

    with serving(page) as http, pytest.raises(ConnectorError, match=r"application/json.*is no text/event-stream"):
        read_some(ks.sources.sse(http.url))


def test_a_stream_that_falls_silent_is_opened_again() -> None:
    async def silent(request: Request) -> Response:
        last_ids.append(request.headers.get("last-event-id"))
        return StreamingResponse(stream(), media_type=SSE)

    async def stream() -> AsyncIterator[bytes]:
        yield b"retry: 1\nid: 5\ndata: 1\n\n"
        await asyncio.sleep(60)

    last_ids: list[str | None] = []
    with serving(silent) as http:
        source = ks.sources.sse(http.url, str, idle_timeout=300)
        with closing(source.open(next(iter(source.splits())), None)) as reader:
            wait_until(lambda: reader.read() is None and len(last_ids) >= 2)
    assert last_ids[:2] == [None, "5"]


def test_a_server_that_is_away_is_unavailable() -> None:
    with pytest.raises(ConnectorUnavailableError, match=r"does not answer: .*refused"):
        read_some(ks.sources.sse(f"http://127.0.0.1:{free_port()}"))


def test_an_event_that_was_not_complete_is_not_taken_for_read() -> None:
    parser = EventParser("", 1_000)
    parser.feed("id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert parser.last_id == "1"


LINES = st.sampled_from(["data: a", "data:b", "data", "id: 1", "id", "event: x", ": comment", "retry: 5", "", "x: y"])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(LINES, ENDS), max_size=20), st.data())
def test_events_do_not_depend_on_how_the_stream_is_cut(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    text = "".join(line + end for line, end in lines) + "\n\n"
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    parser = EventParser("", 10_000)
    parts = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert [event for part in parts for event in parser.feed(part)] == reference(text)


def reference(text: str) -> list[ServerSentEvent]:
    """The events of a whole stream, by the words of the HTML standard."""
    events, data, kind, last_id = [], list[str](), "", ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if data:
                events.append(ServerSentEvent(kind or "message", "\n".join(data), last_id))
            data, kind = [], ""
            continue
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id":
            last_id = value
    return events


def read_some(source: Source) -> list[tuple[list[object], object]]:
    """Read until there is nothing new for a while."""
    reader = source.open(next(iter(source.splits())), None)
    batches, idle = [], 0
    while idle < 3:
        batch = reader.read()
        idle = idle + 1 if batch is None else 0
        if batch is not None:
            batches.append((batch.values.to_pylist(), batch.position))
    reader.close()
    return batches

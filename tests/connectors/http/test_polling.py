"""A polled address: every record of the service is read once, by whatever cursor and through whatever failures."""

from __future__ import annotations

import random
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

import kstreams as ks
from kstreams.connectors import Source
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from kstreams.testing.connectors import Order, SourceContract, read_all
from tests.connectors.ending import assert_source_ends
from tests.connectors.http.feeds import Feed
from tests.connectors.http.serving import Handler, HttpServer, free_port, serving, slowly
from tests.connectors.running import copy_in, ids_in, log_with_topics, running, wait_until, worker_of
from tests.support.certificates import Authority, can_make
from tests.support.examples import few_of

CURSORS: dict[str, Callable[[str], Source]] = {
    "link header": lambda url: orders(f"{url}/linked", cursor=ks.sources.NextLink()),
    "link field": lambda url: orders(f"{url}/nested", records="data.orders", cursor=ks.sources.NextLink("paging.next")),
    "page": lambda url: orders(f"{url}/numbered", cursor=ks.sources.Page("page", size=10)),
    "field, exclusive": lambda url: orders(f"{url}/after", cursor=ks.sources.LastField("id")),
    "field, inclusive": lambda url: orders(f"{url}/from", cursor=ks.sources.LastField("id", parameter="from")),
}


def orders(url: str, **settings: Any) -> Source:
    return ks.sources.http(url, Order, key="id", **{"interval": 20, **settings})


class PolledContract(SourceContract):
    cursor = ""

    @pytest.fixture(autouse=True)
    def feed(self) -> Iterator[None]:
        self._feed = Feed(47)
        with serving(self._feed.handle) as server:
            self._url = server.url
            yield

    def source(self, folder: Path) -> Source:
        return CURSORS[self.cursor](self._url)

    def rows(self, folder: Path) -> list[Any]:
        return self._feed.orders()


class TestLinkHeader(PolledContract):
    cursor = "link header"


class TestLinkField(PolledContract):
    cursor = "link field"


class TestPage(PolledContract):
    cursor = "page"


class TestFieldExclusive(PolledContract):
    cursor = "field, exclusive"


class TestFieldInclusive(PolledContract):
    cursor = "field, inclusive"


@pytest.mark.parametrize("cursor", CURSORS)
def test_records_that_come_later_are_read_once_also_after_a_restart(cursor: str, tmp_path: Path) -> None:
    feed = Feed(0)
    with serving(feed.handle) as server, log_with_topics(tmp_path) as log:
        for count in (0, 3, 10, 10, 11, 64):
            feed.count = count
            copy_in(log, CURSORS[cursor](server.url))
            assert ids_in(log) == list(range(count))


@pytest.mark.parametrize("cursor", few_of(list(CURSORS), 2))
def test_failures_of_the_service_lose_and_repeat_nothing(cursor: str, tmp_path: Path) -> None:
    feed = Feed(200, failures=random.Random(7))
    with serving(feed.handle) as server, log_with_topics(tmp_path) as log:
        with running(worker_of(log, CURSORS[cursor](server.url))):
            wait_until(lambda: len(ids_in(log)) >= 200)
        assert ids_in(log) == list(range(200))


def test_a_service_that_was_away_is_read_when_it_is_back(tmp_path: Path) -> None:
    feed = Feed(30)
    server = HttpServer(feed.handle)
    with log_with_topics(tmp_path) as log:
        worker = worker_of(log, orders(f"{server.url}/linked", cursor=ks.sources.NextLink()))
        with running(worker):
            wait_until(lambda: any("refused" in status.error for status in worker.statuses().values()))
            server.start()
            wait_until(lambda: len(ids_in(log)) == 30)
            server.stop()
            retries = worker.statuses()[0].retries
            wait_until(lambda: worker.statuses()[0].retries > retries)
            feed.count = 50
            server.start()
            wait_until(lambda: len(ids_in(log)) == 50)
        server.stop()
        assert ids_in(log) == list(range(50))


def test_without_a_cursor_a_document_is_read_whenever_it_changes(tmp_path: Path) -> None:
    feed = Feed(3)
    with serving(feed.handle) as server, log_with_topics(tmp_path) as log:
        source = orders(f"{server.url}/all", format="lines")
        copy_in(log, source)
        copy_in(log, source)
        assert ids_in(log) == [0, 1, 2]
        feed.count = 4
        copy_in(log, source)
        assert ids_in(log) == [0, 0, 1, 1, 2, 2, 3]


def test_a_document_that_has_not_changed_is_not_sent_again() -> None:
    feed = Feed(3)
    with serving(feed.handle) as server:
        source = orders(f"{server.url}/all", format="lines")
        (split,) = source.splits()
        with closing(source.open(split, None)) as reader:
            assert reader.read() is not None
            wait_until(lambda: reader.read() is None and len(feed.requests) >= 4)
        assert {request.headers.get("if-none-match") for request in feed.requests[1:4]} == {'"3"'}


def test_a_service_that_asks_to_wait_gets_no_request_in_the_meantime() -> None:
    async def busy_at_first(request: Request) -> Response:
        times.append(request)
        if len(times) == 1:
            return Response(status_code=429, headers={"retry-after": "1"})
        return JSONResponse([])

    times: list[Request] = []
    with serving(busy_at_first) as server:
        source = orders(server.url)
        (split,) = source.splits()
        with pytest.raises(ConnectorUnavailableError, match="429"), closing(source.open(split, None)) as reader:
            reader.read()
        with pytest.raises(ConnectorUnavailableError, match=r"asks to wait for [01]\.\d s"):
            source.open(split, None)
        assert len(times) == 1
        Event().wait(1.01)
        assert len(read_all(source, split)) == 1


def test_a_slow_service_is_waited_for_and_not_taken_for_the_end(tmp_path: Path) -> None:
    async def slow(request: Request) -> Response:
        return await slowly(await feed.handle(request), 0.5)

    feed = Feed(15)
    with serving(slow) as server, log_with_topics(tmp_path) as log:
        copy_in(log, orders(f"{server.url}/linked", cursor=ks.sources.NextLink()))
        assert ids_in(log) == list(range(15))


def test_a_service_that_never_answers_is_unavailable() -> None:
    async def never(request: Request) -> Response:
        return await slowly(Response(), 60)

    with serving(never) as server:
        assert_fails(orders(server.url, request_timeout=200), ConnectorUnavailableError, "does not answer: .*timed out")


def test_records_of_any_form_are_taken_as_dicts_with_keys_of_text() -> None:
    body = b'[{"id": 1, "tags": [1, "a", {}]}, {"id": "x", "tags": null, "more": {"b": 1.5}}]'
    with serving(answering(Response(body))) as server:
        source = ks.sources.http(server.url, key="id")
        (batch,) = read_all(source, next(iter(source.splits())))
        assert batch.keys is not None
        assert batch.keys.to_pylist() == ["1", "x"]
        assert batch.values.to_pylist() == [
            b'{"id": 1, "tags": [1, "a", {}]}',
            b'{"id": "x", "tags": null, "more": {"b": 1.5}}',
        ]


class Quote(msgspec.Struct, rename="camel"):
    trade_id: int
    last_price: float
    traded_at: datetime
    tags: list[str] = []


def test_fields_are_renamed_and_have_defaults_as_the_class_says(tmp_path: Path) -> None:
    body = b'[{"tradeId": 1, "lastPrice": 2, "tradedAt": "2026-01-01T00:00:00Z", "more": 5}]'
    with serving(answering(Response(body))) as server:
        source = ks.sources.http(server.url, Quote, key="trade_id", timestamp="traded_at")
        (batch,) = read_all(source, next(iter(source.splits())))
        new_year = datetime(2026, 1, 1, tzinfo=UTC)
        row = {"trade_id": 1, "last_price": 2.0, "traded_at": new_year, "tags": []}
        assert batch.values.to_pylist() == [row]
        assert batch.keys is not None
        assert batch.timestamps is not None
        assert (batch.keys.to_pylist(), batch.timestamps.to_pylist()) == ([1], [new_year])


def test_event_times_are_milliseconds_or_text_with_a_zone() -> None:
    for time in ("1700000000123", '"2023-11-14T22:13:20.123Z"', '"2023-11-14T23:13:20.123+01:00"'):
        with serving(answering(Response(f'{{"at": {time}}}'))) as server:
            source = ks.sources.http(server.url, timestamp="at")
            (batch,) = read_all(source, next(iter(source.splits())))
            assert batch.timestamps is not None
            assert batch.timestamps.cast("timestamp[ms]").cast("int64").to_pylist() == [1_700_000_000_123]


def test_a_document_is_taken_as_it_is_for_str_and_bytes() -> None:
    with serving(answering(PlainTextResponse("a\nb"))) as server:
        for value, expected in ((str, "a\nb"), (bytes, b"a\nb")):
            source = ks.sources.http(server.url, value)
            (batch,) = read_all(source, next(iter(source.splits())))
            assert batch.values.to_pylist() == [expected]


def test_credentials_are_sent_and_appear_in_no_message() -> None:
    async def refusing(request: Request) -> Response:
        requests.append(request)
        return PlainTextResponse("no access for hidden-1 and hidden-2", 403)

    requests: list[Request] = []
    with serving(refusing) as server:
        url = server.url.replace("http://", "http://ann:hidden-1@") + "/orders?api_key=hidden-2&page=1"
        source = orders(url, headers={"X-Api-Key": "hidden-3"})
        with pytest.raises(ConnectorError) as caught:
            read_all(source, next(iter(source.splits())))
    assert "answered 403 Forbidden: no access for *** and ***" in str(caught.value)
    assert "hidden" not in f"{caught.value!r} {source!r} {list(source.splits())}"
    assert requests[0].headers["x-api-key"] == "hidden-3"
    assert requests[0].headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("response", "settings", "message"),
    [
        (Response(status_code=404), {}, "answered 404 Not Found: check the address and the credentials"),
        (RedirectResponse("https://elsewhere.example/x"), {}, "307.*name the address to which it redirects"),
        (PlainTextResponse("[<html>]"), {}, "is not the JSON that was expected"),
        (JSONResponse({"data": []}), {"records": "items"}, "has no field 'items': it has data"),
        (JSONResponse([], headers={"link": '<https://elsewhere.example>; rel="next"'}), {}, "on another host"),
        (Response(b"[" + b" " * 2_000), {"max_body_bytes": 1_000}, "longer than 1,000 bytes"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_what_to_do(
    response: Response, settings: dict[str, Any], message: str
) -> None:
    with serving(answering(response)) as server:
        assert_fails(orders(server.url, cursor=ks.sources.NextLink(), **settings), ConnectorError, message)


def test_an_address_without_scheme_and_a_key_that_is_no_field_are_refused_at_once() -> None:
    with pytest.raises(ConnectorError, match=r"'example\.com/trades' is no address of an HTTP service"):
        ks.sources.http("example.com/trades")
    with pytest.raises(ConnectorError, match="Order has no field 'symbol' for keys; it has id, name, amount"):
        ks.sources.http(f"http://127.0.0.1:{free_port()}", Order, key="symbol")


def test_what_no_retry_heals_ends_a_source_at_once(tmp_path: Path) -> None:
    for status in (401, 403):
        with serving(answering(Response(status_code=status))) as server:
            (tmp_path / str(status)).mkdir()
            message = f"answered {status}.*check the address and the credentials"
            assert_source_ends(tmp_path / str(status), orders(server.url, token="secret"), message)
    with serving(answering(JSONResponse([]))) as server:
        message = r"cannot be requested \(LocalProtocolError\): check the address"
        assert_source_ends(tmp_path, orders(server.url, token="secret\n"), message)


@pytest.mark.skipif(not can_make(), reason="needs openssl")
def test_a_certificate_that_is_not_trusted_ends_a_source_at_once(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(tmp_path / "authority").server("IP:127.0.0.1"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"https://127.0.0.1:{server.server_port}"
        assert_source_ends(tmp_path, orders(url), "certificate that is not trusted.*SSL_CERT_FILE")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answering(response: Response) -> Handler:
    async def answer(request: Request) -> Response:
        return response

    return answer


def assert_fails(source: Source, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_all(source, next(iter(source.splits())))

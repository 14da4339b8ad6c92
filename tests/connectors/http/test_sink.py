"""Requests of a sink: every row arrives, in the order of its key, and a repeated request can be recognized."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import kstreams as ks
from kstreams.connectors import Sink, SinkBatch, SinkTask, SinkWriter
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from kstreams.testing.connectors import Order, SinkContract, order_batch
from tests.connectors.http.serving import HttpServer, reset, serving
from tests.connectors.running import LETTERS, copy_in, copy_out, log_with_topics, running, topic_rows, wait_until
from tests.connectors.running import worker_to as worker_to_sink
from tests.connectors.systems import Numbered
from tests.support.examples import examples


class Receiver:
    """Keeps requests by their idempotency keys. It refuses ids, and fails before or after it has taken a request."""

    def __init__(self, *, failures: random.Random | None = None, refused: frozenset[int] = frozenset()) -> None:
        self.by_key: dict[str, Any] = {}
        self.requests: list[tuple[str, Any]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._failures = failures
        self._refused = refused

    async def handle(self, request: Request) -> Response:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._answer(request, json.loads(await request.body() or b"null"))
        finally:
            self._at_once -= 1

    async def _answer(self, request: Request, body: Any) -> Response:
        failure = self._failures.random() if self._failures else 1.0
        if failure < 0.1:
            return Response(status_code=503)
        if self._refused.intersection(ids_of(body)):
            return PlainTextResponse("there is no such order", 422)
        self.requests.append((request.headers["idempotency-key"], body))
        self.by_key.setdefault(request.headers["idempotency-key"], body)
        if failure < 0.2:
            reset(request)
        elif failure < 0.3:
            return Response(status_code=500)
        elif failure < 0.35:
            await asyncio.sleep(0.4)
        return Response(status_code=202)

    def rows(self) -> list[Any]:
        return [row for body in self.by_key.values() for row in (body if isinstance(body, list) else [body])]

    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows()]


def ids_of(body: Any) -> list[int]:
    return [row["id"] for row in (body if isinstance(body, list) else [body]) if row is not None and "id" in row]


class HttpContract(SinkContract):
    shape: dict[str, Any] = {}

    @pytest.fixture(autouse=True)
    def receiver(self) -> Iterator[None]:
        self._receiver = Receiver()
        with serving(self._receiver.handle) as server:
            self._url = server.url
            yield

    def sink(self, folder: Path) -> Sink:
        return ks.sinks.http(self._url, **self.shape)

    def orders(self, folder: Path) -> list[Order]:
        return [Order(**row) for row in self._receiver.rows()]


class TestBatches(HttpContract):
    shape = {"batch_rows": 4}


class TestRows(HttpContract):
    shape = {"batch_rows": 1}


def keyed_batch(keys: list[str | None], offset: int = 0) -> SinkBatch:
    """Rows whose values have the number of their offset."""
    offsets = np.arange(offset, offset + len(keys), dtype=np.int64)
    values = pa.array([{"id": number, "key": key} for number, key in zip(offsets.tolist(), keys, strict=True)])
    return SinkBatch(0, offsets, pa.array(keys, pa.string()), values, pa.array([1_000] * len(keys), pa.int64()))


@contextmanager
def opened(sink: Sink) -> Iterator[SinkWriter]:
    with closing(sink.open(SinkTask("app-out", "orders", 0))) as writer:
        assert writer.next_offset() is None
        yield writer


@settings(max_examples=examples(30), deadline=None)
@given(
    keys=st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=120),
    batch_rows=st.sampled_from([1, 3, 50]),
    concurrency=st.integers(1, 5),
    cuts=st.sets(st.integers(1, 119), max_size=4),
    seed=st.integers(0, 1_000),
)
def test_what_the_receiver_has_by_idempotency_key_is_the_topic_and_the_order_of_keys_is_kept(
    keys: list[str | None], batch_rows: int, concurrency: int, cuts: set[int], seed: int
) -> None:
    receiver = Receiver(failures=random.Random(seed))
    with serving(receiver.handle) as server:
        sink = ks.sinks.http(server.url, batch_rows=batch_rows, concurrency=concurrency, request_timeout=300)
        ends = [*sorted(cut for cut in cuts if cut < len(keys)), len(keys)]
        with opened(sink) as writer:
            for begin, end in zip([0, *ends], ends, strict=False):
                writer.write(keyed_batch(keys[begin:end], begin))
                assert list(writer.flush()) == []
                writer.commit(end)
    assert sorted(receiver.ids()) == list(range(len(keys)))
    by_key = defaultdict(list)
    for row in receiver.rows():
        by_key[row["key"]].append(row["id"])
    assert all(ids == sorted(ids) for key, ids in by_key.items() if key is not None)
    assert receiver.most_at_once <= concurrency + 1  # a request that timed out may still be in progress


def test_after_a_crash_each_row_has_the_idempotency_key_that_it_had(tmp_path: Path) -> None:
    receiver = Receiver()
    with serving(receiver.handle) as server:
        sink = ks.sinks.http(server.url, batch_rows=1, concurrency=3)
        for count in (40, 25, 60):  # the offset is never committed: each run begins at 0 again
            with opened(sink) as writer:
                writer.write(keyed_batch(["a", "b", None, "c"] * (count // 4)))
                writer.flush()
    assert len(receiver.requests) > 100
    assert sorted(receiver.ids()) == list(range(60))
    assert set(receiver.by_key) == {f"app-out-0-{offset}" for offset in range(60)}


def test_after_a_crash_a_receiver_knows_rows_that_are_records_by_their_offsets() -> None:
    receiver = Receiver()
    with serving(receiver.handle) as server:
        sink = ks.sinks.http(server.url, batch_rows=7, rows="record")
        for count in (40, 25, 60):
            with opened(sink) as writer:
                writer.write(keyed_batch(["a", "b", None, "c"] * (count // 4)))
                writer.flush()
    rows = {(row["partition"], row["offset"]): row["value"]["id"] for row in receiver.rows()}
    assert rows == {(0, offset): offset for offset in range(60)}
    assert len(receiver.rows()) > 60


def test_rows_that_the_receiver_refuses_become_dead_letters_and_the_others_arrive(tmp_path: Path) -> None:
    receiver = Receiver(refused=frozenset({7, 60, 61}))
    with serving(receiver.handle) as server, log_with_topics(tmp_path) as log:
        copy_in(log, Numbered(100, ["a"]))
        copy_out(log, ks.sinks.http(server.url, batch_rows=40), LETTERS)
        assert sorted(receiver.ids()) == [number for number in range(100) if number not in (7, 60, 61)]
        messages = [headers["__connect.errors.exception.message"] for _, _, headers in topic_rows(log, LETTERS)]
        assert len(messages) == 3
        assert all(b"answered 422 Unprocessable" in message for message in messages if message is not None)


@pytest.mark.parametrize("status", [301, 401, 403, 404, 405])
def test_what_no_row_can_cause_is_an_error_and_no_dead_letter(status: int) -> None:
    with serving(always(Response(status_code=status))) as server:
        url = server.url.replace("//", "//ann:hidden@")
        with opened(ks.sinks.http(url)) as writer:
            writer.write(keyed_batch(["a"]))
            with pytest.raises(ConnectorError, match=f"{status}.*check the") as caught:
                writer.flush()
    assert "hidden" not in f"{caught.value!r} {ks.sinks.http(url)!r}"


def test_a_receiver_that_was_away_has_everything_when_it_is_back(tmp_path: Path) -> None:
    receiver = Receiver()
    server = HttpServer(receiver.handle)
    with log_with_topics(tmp_path) as log, ExitStack() as resources:
        copy_in(log, Numbered(500, ["a"]))
        worker = worker_to_sink(log, ks.sinks.http(server.url, batch_rows=1, retry_timeout=300), resources)
        with running(worker):
            wait_until(lambda: sum(status.retries for status in worker.statuses().values()) >= 2)
            server.start()
            wait_until(lambda: len(receiver.by_key) > 50)
            server.stop()
            server.start()
            wait_until(lambda: len(receiver.by_key) == 500)
        server.stop()
    assert sorted(receiver.ids()) == list(range(500))


def test_a_receiver_that_asks_to_wait_gets_no_request_in_the_meantime() -> None:
    async def busy_once(request: Request) -> Response:
        requests.append(request)
        return Response(status_code=200 if len(requests) > 1 else 429, headers={"retry-after": "1"})

    requests: list[Request] = []
    with serving(busy_once) as server:
        patient = ks.sinks.http(server.url)
        with opened(patient) as writer:
            writer.write(keyed_batch(["a"]))
            assert writer.flush() == []
        assert len(requests) == 2
        requests.clear()
        impatient = ks.sinks.http(server.url, retry_timeout=100)
        with opened(impatient) as writer:
            writer.write(keyed_batch(["a"]))
            with pytest.raises(ConnectorUnavailableError, match="429"):
                writer.flush()
        with pytest.raises(ConnectorUnavailableError, match="asks to wait"):
            impatient.open(SinkTask("app-out", "orders", 0))
        assert len(requests) == 1


def test_a_request_that_is_still_processed_under_its_key_is_sent_again_with_the_same_key() -> None:
    async def in_progress(request: Request) -> Response:
        keys.append(request.headers["idempotency-key"])
        return Response(status_code=409 if len(keys) < 3 else 200)

    keys: list[str] = []
    with serving(in_progress) as server, opened(ks.sinks.http(server.url, concurrency=1)) as writer:
        writer.write(keyed_batch(["a", "b"]))
        assert writer.flush() == []
    assert keys == ["app-out-0-0-1"] * 3


def test_with_the_key_in_the_address_rows_are_put_and_deleted() -> None:
    calls: list[tuple[str, str, str]] = []

    async def store(request: Request) -> Response:
        calls.append((request.method, request.scope["raw_path"].decode(), (await request.body()).decode()))
        return Response(status_code=404 if request.method == "DELETE" else 201)

    batch = keyed_batch(["a/b", "ü", "a/b", None])
    values = pa.array([{"n": 1}, {"n": 2}, None, {"n": 4}])
    with serving(store) as server, opened(ks.sinks.http(f"{server.url}/items/{{key}}", method="PUT")) as writer:
        writer.write(SinkBatch(0, batch.offsets, batch.keys, values, batch.timestamps))
        refused = writer.flush()
    assert sorted(calls, key=lambda call: call[1]) == [
        ("PUT", "/items/%C3%BC", '{"n":2}'),
        ("PUT", "/items/a%2Fb", '{"n":1}'),
        ("DELETE", "/items/a%2Fb", ""),
    ]
    assert [(row.offset, str(row.error)) for row in refused] == [(3, "the row has no key for {key} in the address")]


def test_lines_hold_a_row_each_and_a_null_value_has_none() -> None:
    bodies: list[bytes] = []

    async def keep(request: Request) -> Response:
        assert request.headers["content-type"] == "application/x-ndjson"
        bodies.append(await request.body())
        return Response()

    batch = keyed_batch(["a", "a", "a"])
    values = pa.array([{"n": 1}, None, {"n": 3}])
    with serving(keep) as server, opened(ks.sinks.http(server.url, format="lines", concurrency=1)) as writer:
        writer.write(SinkBatch(0, batch.offsets, batch.keys, values, batch.timestamps))
        writer.flush()
    assert bodies == [b'{"n":1}\n{"n":3}\n']


def test_requests_end_at_the_declared_number_of_bytes() -> None:
    receiver = Receiver()
    with serving(receiver.handle) as server, opened(ks.sinks.http(server.url, batch_bytes=60, concurrency=1)) as writer:
        writer.write(order_batch(range(5)))
        writer.flush()
    assert [len(body) for _, body in receiver.requests] == [1, 1, 1, 1, 1]
    assert receiver.ids() == [0, 1, 2, 3, 4]


def always(response: Response) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return response

    return answer

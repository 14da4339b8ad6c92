"""A webhook answers 200 when its records are durable in the topic, and never before."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import kstreams as ks
from kstreams.connectors import Source, SourceReader
from kstreams.errors import ConnectorUnavailableError
from kstreams.testing.connectors import Order
from tests.connectors.http.serving import free_port
from tests.connectors.running import ids_in, log_with_topics, running, wait_until, worker_of


def orders(port: int, **settings: Any) -> Source:
    return ks.sources.webhook("/orders", Order, key="id", port=port, **settings)


def order(number: int) -> dict[str, object]:
    return {"id": number, "name": f"order {number}", "amount": 1.0}


@contextmanager
def opened(source: Source, position: object = None) -> Iterator[SourceReader]:
    with closing(source.open("/orders", position)) as reader:
        yield reader


class Sending:
    """Requests in threads, whose answers can be awaited."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/orders"
        self._threads = ThreadPoolExecutor(16)
        self._client = httpx.Client(timeout=30)

    def post(self, body: object, **headers: str) -> Any:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._threads.submit(self._client.post, self.url, content=data, headers=names)


def read_one(reader: SourceReader) -> Any:
    while (batch := reader.read()) is None:
        pass
    return batch


def test_a_request_is_answered_when_its_records_are_committed() -> None:
    port = free_port()
    with opened(orders(port)) as reader:
        answer = Sending(port).post([order(1), order(2)])
        batch = read_one(reader)
        assert batch.values.to_pylist() == [order(1), order(2)]
        assert batch.keys.to_pylist() == [1, 2]
        threading.Event().wait(0.3)
        assert not answer.done()
        reader.committed(batch.position)
        assert answer.result().status_code == 200


def test_all_requests_that_are_answered_200_are_in_the_topic(tmp_path: Path) -> None:
    port = free_port()
    with log_with_topics(tmp_path) as log:
        with running(worker_of(log, orders(port))):
            wait_until(lambda: is_listening(port))
            sending = Sending(port)
            answers = [sending.post(order(number)) for number in range(200)]
            assert {answer.result().status_code for answer in answers} == {200}
        assert ids_in(log) == list(range(200))


def test_a_commit_that_takes_too_long_is_answered_503_and_a_repeated_key_adds_nothing() -> None:
    port = free_port()
    with opened(orders(port, timeout=200)) as reader:
        sending = Sending(port)
        late = sending.post(order(1), Idempotency_Key="a").result()
        assert (late.status_code, late.headers["retry-after"]) == (503, "1")
        again = sending.post(order(1), Idempotency_Key="a")
        batch = read_one(reader)
        assert len(batch.values) == 1
        reader.committed(batch.position)
        assert again.result().status_code == 200
        assert sending.post(order(1), Idempotency_Key="a").result().status_code == 200
        assert reader.read() is None


def test_keys_are_remembered_after_a_restart_as_many_as_declared() -> None:
    port = free_port()
    with opened(orders(port, remembered_keys=2)) as reader:
        for key in "abc":
            answer = Sending(port).post(order(1), Idempotency_Key=key)
            batch = read_one(reader)
            reader.committed(batch.position)
            assert answer.result().status_code == 200
    with opened(orders(port, remembered_keys=2), json.loads(json.dumps(batch.position))) as reader:
        for key in "cb":
            assert Sending(port).post(order(1), Idempotency_Key=key).result().status_code == 200
        assert reader.read() is None
        Sending(port).post(order(1), Idempotency_Key="a")  # three keys ago: taken for a new request
        assert len(read_one(reader).values) == 1


def test_requests_that_are_not_committed_when_the_reader_closes_are_answered_503() -> None:
    port = free_port()
    with opened(orders(port)) as reader:
        answers = [Sending(port).post(order(number)) for number in range(2)]
        read_one(reader)
    assert {answer.result().status_code for answer in answers} == {503}


def test_more_than_the_memory_for_pending_requests_is_answered_503_at_once() -> None:
    port = free_port()
    with opened(orders(port, max_pending_bytes=100)) as reader:
        sending = Sending(port)
        first = sending.post(order(1))
        batch = read_one(reader)
        refused = sending.post([order(2), order(3)]).result()
        assert (refused.status_code, refused.text) == (503, "too many requests wait for their commit\n")
        reader.committed(batch.position)
        assert first.result().status_code == 200


@pytest.mark.parametrize(
    ("body", "settings", "headers", "status"),
    [
        (b"no json", {}, {}, 400),
        ({"id": "x"}, {}, {}, 400),
        (b'{"id": 1' + b" " * 2_000, {"max_body_bytes": 1_000}, {}, 413),
        (order(1), {"token": "s3cret"}, {}, 401),
        (order(1), {"token": "s3cret"}, {"Authorization": "Bearer other"}, 401),
        (order(1), {"secret": "tiger"}, {}, 401),
        (order(1), {"secret": "tiger"}, {"X_Hub_Signature_256": "sha256=00"}, 401),
    ],
)
def test_what_is_not_a_valid_request_is_refused_and_adds_no_record(
    body: object, settings: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    port = free_port()
    source = orders(port, **settings)
    assert "s3cret" not in repr(source)
    with opened(source) as reader:
        assert Sending(port).post(body, **headers).result().status_code == status
        assert reader.read() is None


def test_a_token_and_a_signature_of_the_body_admit_a_request() -> None:
    port = free_port()
    body = json.dumps(order(1)).encode()
    signature = hmac.new(b"tiger", body, hashlib.sha256).hexdigest()
    with opened(orders(port, token="s3cret", secret="tiger")) as reader:
        sending = Sending(port)
        answer = sending.post(body, Authorization="Bearer s3cret", X_Hub_Signature_256=f"sha256={signature}")
        reader.committed(read_one(reader).position)
        assert answer.result().status_code == 200


def test_other_paths_and_methods_are_refused() -> None:
    port = free_port()
    with opened(orders(port)):
        assert httpx.post(f"http://127.0.0.1:{port}/other").status_code == 404
        assert httpx.get(f"http://127.0.0.1:{port}/orders").status_code == 405


def test_bodies_as_they_are_and_lines_of_json() -> None:
    port = free_port()
    with opened(ks.sources.webhook("/orders", bytes, port=port)) as reader:
        Sending(port).post(b"\x00\xff")
        assert read_one(reader).values.to_pylist() == [b"\x00\xff"]
    with opened(ks.sources.webhook("/orders", dict, port=port, format="lines")) as reader:
        Sending(port).post(b'{"a":1}\n{"b":"x"}\n')
        assert read_one(reader).values.to_pylist() == [b'{"a":1}', b'{"b":"x"}']


def test_dicts_of_different_forms_are_read_together() -> None:
    port = free_port()
    with opened(ks.sources.webhook("/orders", dict, port=port)) as reader:
        sending = Sending(port)
        sending.post({"a": 1})
        sending.post({"a": "x", "b": [1, "y"]})
        rows = read_one(reader).values.to_pylist()
        while len(rows) < 2:
            rows += read_one(reader).values.to_pylist()
        assert sorted(map(json.loads, rows), key=str) == [{"a": "x", "b": [1, "y"]}, {"a": 1}]


def test_a_port_that_is_in_use_is_tried_again() -> None:
    port = free_port()
    with opened(orders(port)), pytest.raises(ConnectorUnavailableError, match=f"cannot listen at 127.0.0.1:{port}"):
        orders(port).open("/orders", None)


def is_listening(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/orders").status_code == 405
    except httpx.TransportError:
        return False

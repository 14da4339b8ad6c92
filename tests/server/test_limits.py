"""How much is done for those who ask: at a time, and for how long."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.server import Limits
from tests.native.world import WAIT_S, World, until
from tests.server.served import Client, served

TEXTS: dict[str, Any] = {"key": str, "value": str}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, **{"commit.interval.ms": 20})
    made.create("in")
    made.write("in", [("a", "1", 1), ("b", "1", 1), ("other", "1", 1)])
    return made


def last_values(work: Any = lambda value: value) -> ks.Topology:
    builder = ks.StreamsBuilder()
    values = builder.stream("in", **TEXTS).map_values(work, value=str)
    values.to_table(materialized=ks.Materialized("last", queryable=True))
    return builder.build()


def test_a_task_that_hangs_costs_a_deadline_and_its_place_and_no_more(world: World) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(value: str) -> str:
        if value == "hang":
            hangs.set()
            goes_on.wait(WAIT_S)
        return value

    target = "/v1/stores/last/keys/a"
    with served(world, last_values(hang), Limits(concurrency=2)) as (client, streams):
        try:
            until(lambda: streams.state is State.RUNNING and len(client.rows(target)) == 1)
            world.write("in", [("a", "hang", 2)])
            assert hangs.wait(WAIT_S)
            assert client.ask(f"{target}?isolation=read_uncommitted&timeout_ms=100").status == 504
            until(lambda: client.ask(f"{target}?isolation=read_uncommitted&timeout_ms=100").status == 503)
            refused = client.ask("/v1/stores/last/rows")
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert client.rows(target)[0]["value"] == "1"  # what is committed needs no task and no thread
        finally:
            goes_on.set()
        until(lambda: [row["value"] for row in client.rows(target)] == ["hang"])


@contextmanager
def watching(client: Client, target: str) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
    """The events of a watch."""
    connection = client.connection()
    connection.request("GET", target, headers={"Authorization": f"Bearer {client.token}"})
    response = connection.getresponse()
    assert response.status == 200
    assert response.headers["content-type"].startswith("text/event-stream")

    def events() -> Iterator[tuple[str, dict[str, Any]]]:
        name = ""
        for line in response:
            field, _, rest = line.decode().rstrip("\n").partition(": ")
            name = rest if field == "event" else name
            if field == "data":
                yield name, json.loads(rest)

    try:
        yield events()
    finally:
        response.close()
        connection.close()


def test_a_key_and_a_prefix_are_watched_as_they_change(world: World) -> None:
    with served(world, last_values()) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 3)
        with (
            watching(client, "/v1/stores/last/watch?key=a") as of_key,
            watching(client, "/v1/stores/last/watch?prefix=b") as of_prefix,
        ):
            assert next(of_key)[1]["value"] == "1"
            assert next(of_prefix)[1]["key"] == "b"
            world.write("in", [("bb", "2", 2), ("a", "2", 2)])
            name, row = next(of_key)
            assert (name, row["value"], row["position"]) == ("row", "2", {"in-0": 4})
            assert next(of_prefix)[1]["key"] == "bb"
            world.write("in", [("b", None, 3)])
            name, row = next(of_prefix)
            assert (name, row["key"]) == ("gone", "b")


def test_a_watch_is_woken_by_commits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kstreams.server.watching._MAX_WAIT_S", 3_600.0)
    with served(world, last_values()) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 3)
        with watching(client, "/v1/stores/last/watch?key=a") as events:
            assert next(events)[1]["value"] == "1"
            for number in range(2, 12):
                world.write("in", [("a", str(number), number)])
                assert next(events)[1]["value"] == str(number)


def test_a_watch_without_news_is_told_apart_from_a_dead_connection(world: World) -> None:
    with served(world, last_values(), Limits(keep_alive_s=0.2)) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 3)
        connection = client.connection()
        connection.request("GET", "/v1/stores/last/watch?key=a", headers={"Authorization": f"Bearer {client.token}"})
        with closing(connection), connection.getresponse() as response:
            lines = (line.strip() for line in response)
            assert next(lines) == b"event: row"
            assert [line for line in islice(lines, 9) if line and not line.startswith(b"data:")] == [b":"] * 4


def test_scans_take_their_turns(world: World) -> None:
    """One reads at a time, so that they take one place of those who answer; and each has its turn."""
    with served(world, last_values(), Limits(concurrency=2)) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 3)
        with ThreadPoolExecutor(16) as askers:
            answers = list(askers.map(lambda _: client.ask("/v1/stores/last/rows"), range(64)))
        assert {answer.status for answer in answers} == {200}


def test_watches_are_counted_and_give_their_place_back(world: World) -> None:
    target = "/v1/stores/last/watch?key=a"
    with served(world, last_values(), Limits(watches=1)) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 3)
        with watching(client, target) as events:
            next(events)
            assert client.ask(target).status == 503
        with_place = client.connection()

        def is_free() -> bool:
            with_place.close()
            with_place.request("GET", target, headers={"Authorization": f"Bearer {client.token}"})
            return with_place.getresponse().status == 200

        until(is_free)
        with_place.close()


def test_more_rows_than_a_page_has_are_not_watched(world: World) -> None:
    with served(world, last_values(), Limits(page_rows=2)) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/keys/other")) == 1)
        answer = client.ask("/v1/stores/last/watch")
        assert (answer.status, b"more than 2 rows" in answer.body) == (400, True)


def test_a_reader_that_does_not_read_is_cut_off(world: World) -> None:
    """Each event is larger than what the system buffers for a socket."""
    large = "x" * 900_000
    with served(world, last_values(), Limits(watches=1, write_s=0.2)) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 3)
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.connect(client.host[:2])
            head = (
                f"GET /v1/stores/last/watch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.token}\r\n\r\n"
            )
            slow.sendall(head.encode())
            assert slow.recv(12) == b"HTTP/1.1 200"
            assert client.ask("/v1/stores/last/watch").status == 503
            wrote = 0

            def is_cut_off() -> bool:
                nonlocal wrote
                wrote += 1
                world.write("in", [(f"k{wrote % 8}", f"{wrote}{large}", wrote)])
                again = client.connection()
                again.request("GET", "/v1/stores/last/watch?key=a", headers={"Authorization": f"Bearer {client.token}"})
                status = again.getresponse().status
                again.close()
                return status == 200

            until(is_cut_off)


def test_connections_that_are_all_busy_leave_no_place_for_another(world: World) -> None:
    target = "/v1/stores/last/watch?key=a"
    with served(world, last_values(), Limits(connections=3)) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/keys/a")) == 1)
        with watching(client, target), watching(client, target):
            assert client.ask("/v1/status").status == 503
        until(lambda: client.ask("/v1/status").status == 200)


@pytest.mark.parametrize("begun", [b"", b"GET /v1/status HTTP/1.1\r\nHost: local"])
def test_connections_without_a_request_give_way_to_those_that_ask(world: World, begun: bytes) -> None:
    with served(world, last_values(), Limits(connections=8)) as (client, _), ExitStack() as open_sockets:
        for _ in range(5):
            for _ in range(20):
                open_sockets.enter_context(client.raw()).sendall(begun)
            assert client.ask("/v1/status").status == 200


def test_six_hundred_silent_connections_keep_nobody_out(world: World) -> None:
    with served(world, last_values()) as (client, _), ExitStack() as open_sockets:
        for _ in range(600):
            open_sockets.enter_context(client.raw())
        began = monotonic()
        assert [client.ask("/v1/status").status for _ in range(20)] == [200] * 20
        assert monotonic() - began < 5


def test_an_idle_connection_gives_way_after_those_that_never_asked(world: World) -> None:
    with served(world, last_values(), Limits(connections=4)) as (client, _), ExitStack() as open_sockets:
        idle = client.connection()
        idle.request("GET", "/v1/status", headers={"Authorization": f"Bearer {client.token}"})
        assert idle.getresponse().read()
        for _ in range(6):
            open_sockets.enter_context(client.raw())
            assert client.ask("/v1/status").status == 200
        idle.request("GET", "/v1/status", headers={"Authorization": f"Bearer {client.token}"})
        assert idle.getresponse().status == 200
        for _ in range(6):
            asked = open_sockets.enter_context(client.raw())
            asked.sendall(client.request("/v1/status"))
            assert asked.recv(12) == b"HTTP/1.1 200"
        idle.close()


@pytest.mark.parametrize("begun", [b"", b"GET /v1/status HTTP/1.1\r\nHost: local", b"\r\n"])
def test_who_does_not_ask_in_time_is_cut_off(world: World, begun: bytes) -> None:
    """Nothing, a part of the headers, or a line that is no request yet."""
    with served(world, last_values(), Limits(header_s=0.2)) as (client, _), client.raw() as slow:
        slow.sendall(begun)
        assert slow.recv(1) == b""


def test_who_sends_headers_drop_by_drop_is_cut_off(world: World) -> None:
    with served(world, last_values(), Limits(header_s=0.5)) as (client, _), client.raw() as slow:
        slow.sendall(b"GET /v1/status HTTP/1.1\r\n")

        def is_cut_off() -> bool:
            try:
                slow.sendall(b"X: 1\r\n")
            except OSError:
                return True
            return False

        until(is_cut_off)


def test_headers_without_end_are_not_kept(world: World) -> None:
    with served(world, last_values()) as (client, _), client.raw() as greedy:
        greedy.sendall(b"GET /v1/status HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            greedy.sendall(b"X: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n" * 1_000_000)


@pytest.mark.parametrize("after", [b"", b"\r\n"])
def test_an_idle_connection_is_closed(world: World, after: bytes) -> None:
    with served(world, last_values(), Limits(idle_s=1, header_s=1.0)) as (client, _), client.raw() as idle:
        idle.sendall(client.request("/v1/status"))
        assert idle.recv(15) == b"HTTP/1.1 200 OK"
        idle.sendall(after)
        while idle.recv(65_536):
            pass


def test_a_body_ends_the_connection(world: World) -> None:
    with served(world, last_values()) as (client, _), client.raw() as asker:
        asker.sendall(client.request("/v1/status", "Content-Length: 1000000000"))
        answer = asker.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 413")
        while asker.recv(65_536):
            pass


def test_a_page_that_nobody_reads_is_given_up(world: World) -> None:
    """It is larger than what the system buffers for a socket."""
    world.write("in", [(f"k{number}", "x" * 900_000, number) for number in range(16)])
    with served(world, last_values(), Limits(write_s=0.2, connections=2)) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 19)
        with client.raw(4_096) as slow:
            slow.sendall(client.request("/v1/stores/last/rows"))
            assert slow.recv(12) == b"HTTP/1.1 200"
            until(lambda: client.ask("/v1/status").status == 200)


def test_an_answer_of_many_partitions_has_one_deadline(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition after the other, each of which takes its time."""
    world.create("wide", 8)
    builder = ks.StreamsBuilder()
    kept = ks.Materialized("wide", queryable=True)
    builder.table("wide", key=str, value=str, materialized=kept)
    with served(world, builder.build()) as (client, streams):
        until(lambda: streams.state is State.RUNNING and client.ask("/v1/stores/wide/rows").status == 200)
        ask = streams.query

        def slowly(*given: Any, **how: Any) -> Any:
            sleep(0.2)
            return ask(*given, **how)

        monkeypatch.setattr(streams, "query", slowly)
        for target in ("rows?timeout_ms=500", "keys/nobody?timeout_ms=500", "keys?key=a&key=b&timeout_ms=500"):
            began = monotonic()
            answer = client.ask(f"/v1/stores/wide/{target}")
            assert (answer.status, monotonic() - began < 1.2) == (504, True), (target, answer)


def test_a_store_has_more_partitions_than_questions_are_answered_at_a_time(world: World) -> None:
    world.create("wide", 8)
    builder = ks.StreamsBuilder()
    builder.table("wide", key=str, value=str, materialized=ks.Materialized("wide", queryable=True))
    with served(world, builder.build(), Limits(concurrency=2)) as (client, streams):
        until(lambda: streams.state is State.RUNNING and client.ask("/v1/stores/wide/rows").status == 200)
        for _ in range(5):
            assert client.ask("/v1/stores/wide/count").json()["count"] == 0

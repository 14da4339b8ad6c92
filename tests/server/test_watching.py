"""Watches: what becomes of a row is told truly, and nothing is left of a watch that ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.server import application
from tests.native.world import World, until
from tests.server.served import Client, served
from tests.server.test_limits import last_values, watching


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, **{"commit.interval.ms": 20})
    made.create("in", 1)
    return made


@contextmanager
def asked(world: World, topology: Any, store: str, rows: int) -> Iterator[Client]:
    """Who asks an application, once a store has so many rows."""
    with served(world, topology) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows(f"/v1/stores/{store}/rows")) == rows)
        yield client


def test_a_row_that_is_not_among_the_first_any_more_is_not_told_as_gone(world: World) -> None:
    world.write("in", [("a", "1", 1), ("c", "1", 1)])
    with (
        asked(world, last_values(), "last", 2) as client,
        watching(client, "/v1/stores/last/watch?limit=2") as events,
    ):
        assert [next(events)[1]["key"] for _ in range(2)] == ["a", "c"]
        world.write("in", [("b", "1", 1)])
        assert [(name, "more than 2 rows" in told["error"]) for name, told in events] == [("error", True)]


def test_of_a_window_that_is_gone_it_is_told_which(world: World) -> None:
    builder = ks.StreamsBuilder()
    kept = ks.Materialized("sessions", retention=10**9, queryable=True)
    windows = ks.SessionWindows(gap=100, grace=10**8)
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count(kept)
    world.write("in", [("a", "", 0), ("a", "", 1_000)])
    with (
        asked(world, builder.build(), "sessions", 2) as client,
        watching(client, "/v1/stores/sessions/watch?key=a") as events,
    ):
        assert [next(events)[1]["window_end"] for _ in range(2)] == [0, 1_000]
        world.write("in", [("a", "", 50)])
        told = [next(events) for _ in range(2)]
        assert [(name, row["window_start"], row["window_end"]) for name, row in told] == [
            ("row", 0, 50), ("gone", 0, 0),
        ]  # fmt: skip


def test_a_watch_whose_request_is_cancelled_ends(world: World) -> None:
    """As another ASGI server, or a time limit of the application in which it is mounted, ends requests."""
    world.write("in", [("a", "1", 1)])
    with served(world, last_values()) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 1)
        left = asyncio.run(_cancelled(application(streams, "a-token-that-is-long-enough")))
        assert left == 1  # who counts


async def _cancelled(app: Any) -> int:
    sent = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            sent.set()

    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer a-token-that-is-long-enough")]
    path = "/v1/stores/last/watch"
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
    request = asyncio.ensure_future(app(scope, receive, send))
    await asyncio.wait_for(sent.wait(), 30)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    await asyncio.sleep(0.1)
    app.close()
    return len(asyncio.all_tasks())


def test_what_ends_a_watch_is_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("in", [("a", "1", 1)])
    with served(world, last_values()) as (client, streams):
        until(lambda: streams.state is State.RUNNING and len(client.rows("/v1/stores/last/rows")) == 1)
        with watching(client, "/v1/stores/last/watch?key=a") as events:
            next(events)
            monkeypatch.setattr(streams, "committed_nowait", lambda *given: 1 / 0)
            world.write("in", [("a", "2", 2)])
            until(lambda: "ZeroDivisionError" in caplog.text)

"""Aggregations by expressions keep sums and counts; whoever asks is told what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import kstreams as ks
from kstreams import app
from kstreams.runtime.native.lifecycle import State
from kstreams.state.read_only_store import ReadOnlyStore
from tests.native.world import World, until

BOTH = pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])


class Delays(msgspec.Struct, frozen=True):
    """What is told of a key."""

    flights: int
    mean: float


TOLD = Delays(4, 1.5)
COLUMN = pa.struct([("flights", pa.int64()), ("mean", pa.float64())])


def topology() -> ks.Topology:
    builder, delays = ks.StreamsBuilder(), {"flights": ks.len(), "mean": ks.value.mean()}
    grouped = builder.stream("in", key=str, value=int).group_by_key()
    grouped.aggregate(**delays, value=Delays, materialized="delays")
    windows = grouped.windowed_by(ks.TimeWindows(size=1_000))
    windows.aggregate(**delays, value=Delays, materialized="windows")
    sessions = grouped.windowed_by(ks.SessionWindows(gap=1_000))
    sessions.aggregate(**delays, value=Delays, materialized="sessions")
    return builder.build()


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, **{"commit.interval.ms": 10})
    world.create("in", 2)
    return world


def write(world: World) -> None:
    world.write("in", [("a", number.to_bytes(8, "big"), number) for number in range(4)])


@BOTH
def test_every_look_up_and_scan_and_query_tells_the_result(world: World, isolation: Any) -> None:
    write(world)
    with world.streams(topology()) as streams:
        streams.start()
        until(lambda: streams.state is State.RUNNING)
        delays = streams.store("delays", isolation=isolation)
        until(lambda: (found := delays.get("a")) is not None and found.value == TOLD)
        (row,) = delays.all()
        assert row == ("a", ks.ValueAndTimestamp(TOLD, 3))
        assert delays.range("a") == delays.prefix_scan("a", ks.serde_of(str)) == [row]
        assert delays.get("b") is None
        windows = streams.store("windows", ks.ReadOnlyWindowStore, isolation=isolation)
        assert windows.fetch("a") == [(0, row[1])]
        assert [value for _, value in windows.all()] == [windows.get("a", 0)] == [row[1]]
        sessions = streams.store("sessions", ks.ReadOnlySessionStore, isolation=isolation)
        assert [value for _, value in sessions.fetch("a")] == [sessions.fetch_session("a", 0, 3)] == [TOLD]

        def asked(store: str, query: Any) -> Any:
            return streams.query(store, query, isolation=isolation).only_value

        assert asked("delays", ks.KeyQuery("a")) == TOLD
        assert asked("delays", ks.TimestampedKeyQuery("a")) == row[1]
        assert asked("delays", ks.RangeQuery()) == [("a", TOLD)]
        assert asked("delays", ks.TimestampedRangeQuery()) == [row]
        assert asked("windows", ks.WindowKeyQuery("a")) == [(0, row[1])]
        assert asked("windows", ks.WindowRangeQuery()) == windows.all()
        assert asked("sessions", ks.SessionKeyQuery("a")) == sessions.all()


@BOTH
def test_tables_have_the_fields_of_the_result_with_rows_and_without(world: World, isolation: Any) -> None:
    with world.streams(topology()) as streams:
        streams.start()
        until(lambda: streams.state is State.RUNNING)
        for name in ("delays", "windows", "sessions"):
            store: Any = streams.store(name, ReadOnlyStore, isolation=isolation)
            assert store.to_arrow().schema.field("value").type == COLUMN
        write(world)
        query = "select value.mean from delays"
        until(lambda: streams.sql(query, isolation=isolation).to_pylist() == [{"mean": 1.5}])
        assert store.to_arrow()["value"].to_pylist() == [msgspec.to_builtins(TOLD)]
    stopped = app.App(topology(), streams.config, Path("app.py"))
    assert app.sql(stopped, "select value.flights from windows").to_pylist() == [{"flights": 4}]

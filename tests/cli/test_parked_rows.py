"""Rows that the target of a sink refuses are parked, each once, and go back into the sink."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.connectors import SinkTask, SinkWriter
from kstreams.errors import ConnectorUnavailableError, TopologyError
from kstreams.testing.connectors import Order, order_of
from tests.connectors.systems import Database, DatabaseWriter, orders, orders_in
from tests.log.embedded.files import kill, start
from tests.native.world import World, until

COUNT = 40


class AwayOnce(Database):
    """A database that is away at its first commit."""

    commits = 0

    def open(self, task: SinkTask) -> SinkWriter:
        return AwayOnceWriter(self, task)


class AwayOnceWriter(DatabaseWriter):
    def commit(self, next_offset: int) -> None:
        AwayOnce.commits += 1
        if AwayOnce.commits == 1:
            raise ConnectorUnavailableError("the database is away")
        super().commit(next_offset)


@pytest.fixture
def world(kstreams: Any) -> World:
    world = World(kstreams.folder)
    world.create("orders", 2)
    world.create("parked", 2)
    world.write("orders", [(number, order_of(number), number) for number in range(COUNT)])
    return world


@pytest.fixture
def parked(kstreams: Any, world: World) -> Any:
    """Types `kstreams parked ...` for the log of the application."""
    return lambda *words, **more: kstreams("parked", *words, "--log-dir", str(world.settings["log.dir"]), **more)


def copy(world: World, sink: Database, retry: ks.Retry | None = None) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=int, value=Order).to(sink, retry=retry, park="parked", name="copy")
    world.run(builder.build())


def listed(parked: Any) -> list[dict[str, Any]]:
    outcome = parked("list", "parked", "--json")
    assert outcome.status == 0, outcome.err
    return outcome.json_lines()


def test_refused_rows_are_parked_with_their_history_and_the_others_are_written(world: World, parked: Any) -> None:
    copy(world, Database(world.folder / "copy.db", refused=["order 4", "order 7"]))
    assert orders_in(world.folder / "copy.db") == [order_of(n) for n in range(COUNT) if n not in (4, 7)]
    rows = listed(parked)
    assert {row["error"] for row in rows} == {f"ValueError: order {n} is not wanted" for n in (4, 7)}
    assert [(row["operator"], row["attempts"]) for row in rows] == [("copy-sink", 1)] * 2
    assert all(row["input"].startswith("app-copy-sink-") for row in rows)


def test_a_parked_row_goes_back_into_the_sink(world: World, parked: Any) -> None:
    copy(world, Database(world.folder / "copy.db", refused=["order 4", "order 7"]))
    places = {row["error"].split()[2]: row["record"] for row in listed(parked)}
    assert parked("retry", "parked", places["4"]).status == 0
    assert parked("discard", "parked", places["7"], "--yes").status == 0
    copy(world, Database(world.folder / "copy.db"))
    assert orders_in(world.folder / "copy.db") == [order_of(n) for n in range(COUNT) if n != 7]
    assert listed(parked) == []


def test_a_row_that_is_refused_again_is_parked_again(world: World, parked: Any) -> None:
    sink = Database(world.folder / "copy.db", refused=["order 4"])
    copy(world, sink)
    assert parked("retry", "parked", "--all").status == 0
    copy(world, sink)
    assert [row["error"] for row in listed(parked)] == ["ValueError: order 4 is not wanted"]
    assert len(orders_in(world.folder / "copy.db")) == COUNT - 1


def test_a_row_that_was_parked_after_several_attempts_goes_back_into_the_sink(world: World, parked: Any) -> None:
    twice = ks.Retry(backoff="1ms", attempts=2)
    for _ in range(2):
        copy(world, Database(world.folder / "copy.db", refused=["order 4"]), twice)
        time.sleep(0.01)
    (row,) = listed(parked)
    assert row["attempts"] == 2
    assert parked("show", "parked", row["record"]).status == 0
    assert parked("retry", "parked", row["record"]).status == 0
    copy(world, Database(world.folder / "copy.db"), twice)
    assert orders_in(world.folder / "copy.db") == [order_of(n) for n in range(COUNT)]
    assert listed(parked) == []


def test_a_row_is_parked_once_also_if_the_target_is_away_at_the_commit(world: World, parked: Any) -> None:
    AwayOnce.commits = 0
    sink = AwayOnce(world.folder / "copy.db", refused=["order 4", "order 7"])
    with pytest.raises(ConnectorUnavailableError):
        copy(world, sink)
    copy(world, sink)
    assert len(listed(parked)) == 2
    assert len(orders_in(world.folder / "copy.db")) == COUNT - 2


def test_a_topic_has_no_parking_topic() -> None:
    with pytest.raises(TopologyError, match="needs a sink: a topic refuses no rows"):
        ks.StreamsBuilder().stream("orders", key=int, value=Order).to("copies", park="parked")


APPLICATION = """
import sys
from pathlib import Path
import kstreams as ks
from kstreams.testing.connectors import Order
from tests.connectors.systems import Database, Numbered
folder = Path(sys.argv[1])
rows = int(sys.argv[2])
builder = ks.StreamsBuilder()
source = Numbered(rows, ["a"], batch=500, tasks=1).to_topic("orders", 4)
refused = [f"order {number}" for number in range(0, rows, 1_000)]
builder.stream(source, name="orders").to(Database(folder / "copy.db", refused), park="parked", name="copy")
settings = {
    "application.id": "app", "log.dir": folder / "log", "state.dir": folder / "state", "commit.interval.ms": 50,
    "processing.guarantee": "exactly_once_v2",
}
with ks.KafkaStreams(builder, settings) as streams:
    streams.start()
    streams.wait()
"""


@pytest.mark.parametrize(
    ("kills", "rows", "seed"), [(1, 6_000, 5), pytest.param(30, 100_000, 6, marks=[pytest.mark.slow])]
)
def test_killed_processes_park_each_refused_row_once(tmp_path: Path, kills: int, rows: int, seed: int) -> None:
    print(f"seed {seed}")
    moments = random.Random(seed)
    world = World(tmp_path)
    world.create("orders", 4)
    world.create("parked", 4)
    process = start(APPLICATION, tmp_path, rows)
    expected = [order for order in orders(rows) if order.id % 1_000]
    try:
        for _ in range(kills):
            time.sleep(moments.uniform(0.7, 2.0))
            kill(process)
            process = start(APPLICATION, tmp_path, rows)
        until(lambda: len(orders_in(tmp_path / "copy.db")) >= len(expected))
        until(lambda: len(world.rows("parked", int, Order)) >= rows // 1_000)
    finally:
        kill(process)
    assert orders_in(tmp_path / "copy.db") == expected
    assert sorted(row.key for row in world.rows("parked", int, Order)) == list(range(0, rows, 1_000))

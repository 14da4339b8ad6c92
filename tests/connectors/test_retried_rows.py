"""Rows that the target of a sink refuses wait with `retry=`, and later rows of their key behind them."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.connectors import RefusedRow, Sink, SinkBatch, SinkTask, SinkWriter
from kstreams.errors import ConnectorUnavailableError, TopologyError
from kstreams.kernel.batch import TopicPartition
from kstreams.processor.context import parking
from kstreams.runtime.native.engine import explain, reset
from kstreams.testing.connectors import Order, order_of
from tests.connectors.systems import Database, DatabaseWriter
from tests.log.embedded.files import kill, start
from tests.native.world import World, until
from tests.support.kafka_topics import delete_everything

KEYS = 5
COUNT = 40


class Moody(Database):
    """A database that refuses an order as long as `refuses` says so; `attempts` has the ids that were written to it."""

    def __init__(self, path: Path, refuses: Callable[[int, int], bool]) -> None:
        super().__init__(path)
        self.refuses = refuses
        self.attempts: list[int] = []
        self.failing_commits = 0

    def open(self, task: SinkTask) -> SinkWriter:
        return MoodyWriter(self, task)


class MoodyWriter(DatabaseWriter):
    def __init__(self, sink: Moody, task: SinkTask) -> None:
        super().__init__(sink, task)
        self._moody = sink

    def write(self, batch: SinkBatch) -> None:
        super().write(batch)
        self._moody.attempts += [row["id"] for row in batch.values.to_pylist()]

    def flush(self) -> list[RefusedRow]:
        refused = [
            RefusedRow(offset, ValueError(f"order {row['id']} is not wanted now"))
            for offset, row in self._rows
            if self._moody.refuses(int(str(row["id"])), self._moody.attempts.count(int(str(row["id"]))))
        ]
        offsets = {row.offset for row in refused}
        self._rows = [(offset, row) for offset, row in self._rows if offset not in offsets]
        return refused

    def commit(self, next_offset: int) -> None:
        if self._moody.failing_commits:
            self._moody.failing_commits -= 1
            raise ConnectorUnavailableError("the database is away")
        super().commit(next_offset)


def ids_in(path: Path) -> list[int]:
    """The ids of the orders in the sequence in which they were written."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path, timeout=60)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchall():
            return []
        return [number for (number,) in database.execute("SELECT id FROM orders ORDER BY rowid")]


def of_key(ids: list[int], key: int, keys: int = KEYS) -> list[int]:
    return [number for number in ids if number % keys == key]


def waits(streams: ks.KafkaStreams) -> dict[str, float]:
    """The metrics of the only task."""
    return {name.name: value for name, value in streams.metrics().items() if name.group == "connector-task-metrics"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, **{"processing.guarantee": "exactly_once_v2", "commit.interval.ms": 20})
    world.create("orders", 1)
    world.create("parked", 1)
    world.write("orders", [(number % KEYS, order_of(number), number) for number in range(COUNT)])
    return world


def copies(sink: Sink, retry: ks.Retry, park: str | None = "parked") -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=int, value=Order).to(sink, retry=retry, park=park, name="copy")
    return builder.build()


def run_until(world: World, topology: ks.Topology, condition: Callable[[], bool]) -> None:
    with world.streams(topology) as streams:
        streams.start()
        until(condition)


SOON = ks.Retry(backoff="30ms", factor=1, attempts=8)


def test_a_row_that_is_refused_twice_is_written_at_the_third_attempt(world: World) -> None:
    sink = Moody(world.folder / "copy.db", lambda number, attempt: number == 39 and attempt < 3)
    run_until(world, copies(sink, SOON), lambda: len(ids_in(sink.path)) == COUNT)
    assert ids_in(sink.path) == list(range(COUNT))
    assert sink.attempts.count(39) == 3
    assert world.rows("parked") == []


def test_later_rows_of_the_key_wait_behind_a_refused_row_and_all_others_go_on(world: World) -> None:
    is_open = False
    sink = Moody(world.folder / "copy.db", lambda number, _: number == 11 and not is_open)
    others = [number for number in range(COUNT) if number % KEYS != 1 or number < 11]
    with world.streams(copies(sink, ks.Retry(backoff="30ms", factor=1, attempts=100_000))) as streams:
        streams.start()
        until(lambda: len(ids_in(sink.path)) >= len(others))
        time.sleep(0.3)
        assert sorted(ids_in(sink.path)) == others
        world.write("orders", [(number % KEYS, order_of(number), number) for number in range(COUNT, COUNT + KEYS)])
        until(lambda: len(ids_in(sink.path)) >= len(others) + KEYS - 1)
        assert COUNT + 1 not in ids_in(sink.path)
        until(lambda: waits(streams)["waiting-records"] == len(range(11, COUNT + KEYS, KEYS)))
        assert waits(streams)["oldest-wait-ms"] >= 300
        is_open = True
        until(lambda: len(ids_in(sink.path)) == COUNT + KEYS)
    assert of_key(ids_in(sink.path), 1) == list(range(1, COUNT + KEYS, KEYS))


def test_waiting_rows_are_written_by_the_next_run(world: World) -> None:
    sink = Moody(world.folder / "copy.db", lambda number, _: number == 11)
    world.run(copies(sink, SOON))
    assert 16 not in ids_in(sink.path)
    time.sleep(0.05)
    world.run(copies(Moody(sink.path, lambda number, _: False), SOON))
    assert of_key(ids_in(sink.path), 1) == list(range(1, COUNT, KEYS))
    assert len(ids_in(sink.path)) == COUNT


def test_a_row_is_parked_after_its_last_attempt_and_the_next_row_of_its_key_takes_its_turn(world: World) -> None:
    sink = Moody(world.folder / "copy.db", lambda number, _: number == 11)
    topology = copies(sink, ks.Retry(backoff="30ms", factor=1, attempts=3))
    run_until(world, topology, lambda: len(ids_in(sink.path)) == COUNT - 1 and len(world.rows("parked")) == 1)
    assert of_key(ids_in(sink.path), 1) == [number for number in range(1, COUNT, KEYS) if number != 11]
    with world.log() as log, log.consumer() as consumer:
        consumer.assign([TopicPartition("parked", 0)])
        (row,) = [row for batch in consumer.poll(1.0) for row in batch.rows()]
    history = parking.history(row.headers)
    assert history[parking.ATTEMPTS] == "3"
    assert int(history[parking.LAST_TIME]) - int(history[parking.FIRST_TIME]) >= 60
    assert row.timestamp == 11


def test_an_error_that_retry_does_not_name_is_parked_at_once(world: World) -> None:
    sink = Moody(world.folder / "copy.db", lambda number, _: number == 11)
    world.run(copies(sink, ks.Retry(on=TimeoutError)))
    assert len(world.rows("parked", int, Order)) == 1
    assert sorted(ids_in(sink.path)) == [number for number in range(COUNT) if number != 11]


def test_each_row_is_written_once_when_the_target_is_away_at_commits(world: World) -> None:
    sink = Moody(world.folder / "copy.db", lambda number, attempt: number % 7 == 0 and attempt < 2 + number % 3)
    sink.failing_commits = 4
    run_until(world, copies(sink, SOON), lambda: len(ids_in(sink.path)) >= COUNT)
    assert sorted(ids_in(sink.path)) == list(range(COUNT))
    for key in range(KEYS):
        assert of_key(ids_in(sink.path), key) == list(range(key, COUNT, KEYS))


def test_a_row_waits_for_the_row_that_its_foreign_key_names(world: World) -> None:
    path = world.folder / "sql.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE customers (name TEXT PRIMARY KEY)")
        database.executemany("INSERT INTO customers VALUES (?)", [(f"order {n}",) for n in range(COUNT) if n != 11])
        database.execute("CREATE TABLE orders (id INTEGER, name TEXT, amount REAL)")
        database.execute(
            "CREATE TRIGGER customer BEFORE INSERT ON orders WHEN NEW.name NOT IN (SELECT name FROM customers) "
            "BEGIN SELECT RAISE(ABORT, 'no such customer'); END"
        )
    sink = ks.sinks.sql(f"sqlite:///{path}", "orders", mode="insert")
    retry = ks.Retry(backoff="30ms", factor=1, attempts=100_000)
    others = [number for number in range(COUNT) if number % KEYS != 1 or number < 11]
    with world.streams(copies(sink, retry)) as streams:
        streams.start()
        until(lambda: ids_in(path) == others)
        with closing(sqlite3.connect(path, timeout=60)) as database, database:
            database.execute("INSERT INTO customers VALUES ('order 11')")
        until(lambda: len(ids_in(path)) == COUNT)
    assert of_key(ids_in(path), 1) == list(range(1, COUNT, KEYS))


@pytest.mark.kafka
@pytest.mark.slow
def test_rows_wait_in_a_topic_of_kafka(kafka: Any, tmp_path: Path) -> None:
    delete_everything(kafka.bootstrap_servers)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "processing.guarantee": "exactly_once_v2"}
    world = World(tmp_path, **settings)
    world.create("orders", 1)
    world.create("parked", 1)
    world.write("orders", [(number % KEYS, order_of(number), number + 1) for number in range(COUNT)])
    sink = Moody(tmp_path / "copy.db", lambda number, attempt: number == 12 or (number % 7 == 0 and attempt < 3))
    sink.failing_commits = 4
    for _ in range(2):
        topology = copies(sink, ks.Retry(backoff="30ms", factor=1, attempts=5))
        run_until(
            world, topology, lambda: len(ids_in(sink.path)) >= COUNT - 1 and len(world.rows("parked", int, Order)) >= 1
        )
        sink.attempts.clear()
    assert sorted(ids_in(sink.path)) == [number for number in range(COUNT) if number != 12]
    for key in range(KEYS):
        assert of_key(ids_in(sink.path), key) == sorted(of_key(ids_in(sink.path), key))
    assert [row.value for row in world.rows("parked", int, Order)] == [order_of(12)]


class Repeating(Moody):
    """The same as a target that keeps no offsets."""

    at_least_once = True

    def open(self, task: SinkTask) -> SinkWriter:
        return RepeatingWriter(self, task)


class RepeatingWriter(MoodyWriter):
    def next_offset(self) -> int | None:
        super().next_offset()
        return None


def test_rows_wait_also_for_a_target_that_keeps_no_offsets(world: World) -> None:
    sink = Repeating(world.folder / "copy.db", lambda number, _: number == 39)
    world.run(copies(sink, SOON))
    time.sleep(0.05)
    open_sink = Repeating(sink.path, lambda number, attempt: False)
    world.run(copies(open_sink, SOON))
    assert ids_in(sink.path) == list(range(COUNT))
    world.run(copies(open_sink, SOON))
    assert open_sink.attempts == [39]


def test_a_reset_deletes_the_waiting_rows(world: World) -> None:
    topology = copies(Moody(world.folder / "copy.db", lambda number, _: number == 39), SOON)
    world.run(topology)
    assert "app-copy-sink-waiting" in world.topics()
    assert "app-copy-sink-waiting" in {deletion.name for deletion in reset(topology, Config(world.settings))}
    assert "app-copy-sink-waiting" not in world.topics()


def test_explain_says_what_becomes_of_refused_rows(world: World) -> None:
    topology = copies(Moody(world.folder / "copy.db", lambda *_: False), SOON)
    why = next(row.why for row in explain(topology, Config(world.settings)) if row.path == "connector")
    assert why.endswith("; a refused row waits for up to 8 attempts; refused rows are parked in parked")


def test_a_topic_refuses_no_rows() -> None:
    with pytest.raises(TopologyError, match="needs a sink: a topic refuses no rows"):
        ks.StreamsBuilder().stream("orders", key=int, value=Order).to("copies", retry=SOON)


APPLICATION = """
import sys
import time
from pathlib import Path
import kstreams as ks
from kstreams.testing.connectors import Order
from tests.connectors.test_retried_rows import Moody, copies
folder = Path(sys.argv[1])
def refuses(number, attempt):
    if number % 997 == 0:
        return True
    return number % 9 == 0 and (time.time_ns() // 150_000_000 + number // 9) % 3 == 0
class Forgetful(list):
    def count(self, number):
        return 0
    def __iadd__(self, numbers):
        return self
sink = Moody(folder / "copy.db", refuses)
sink.attempts = Forgetful()
sink.commit_interval_ms = 50
settings = {
    "application.id": "app", "log.dir": folder / "log", "state.dir": folder / "state", "commit.interval.ms": 50,
    "processing.guarantee": "exactly_once_v2",
}
with ks.KafkaStreams(copies(sink, ks.Retry(backoff="40ms", factor=1, attempts=20)), settings) as streams:
    streams.start()
    streams.wait()
"""


@pytest.mark.parametrize(
    ("kills", "rows", "keys", "seed"),
    [(1, 1_000, 40, 1), pytest.param(30, 30_000, 400, 6, marks=[pytest.mark.slow])],
)
def test_killed_processes_write_each_row_once_and_in_the_order_of_its_key(
    tmp_path: Path, kills: int, rows: int, keys: int, seed: int
) -> None:
    print(f"seed {seed}")
    moments = random.Random(seed)
    world = World(tmp_path)
    world.create("orders", 2)
    world.create("parked", 2)
    process = start(APPLICATION, tmp_path)
    expected = [number for number in range(rows) if number % 997]
    try:
        for part in range(kills):
            begin, end = (rows * share // (kills + 1) for share in (part, part + 1))
            world.write("orders", [(number % keys, order_of(number), number) for number in range(begin, end)])
            time.sleep(moments.uniform(0.7, 2.0))
            kill(process)
            process = start(APPLICATION, tmp_path)
        begin = rows * kills // (kills + 1)
        world.write("orders", [(number % keys, order_of(number), number) for number in range(begin, rows)])
        for _ in range(4):
            with suppress(AssertionError):
                until(lambda: len(ids_in(tmp_path / "copy.db")) >= len(expected))
        until(lambda: len(world.rows("parked", int, Order)) >= len(range(0, rows, 997)))
        time.sleep(0.3)
    finally:
        kill(process)
    ids = ids_in(tmp_path / "copy.db")
    assert sorted(ids) == expected
    for key in range(keys):
        assert of_key(ids, key, keys) == sorted(of_key(ids, key, keys))
    assert sorted(row.value.id for row in world.rows("parked", int, Order)) == list(range(0, rows, 997))

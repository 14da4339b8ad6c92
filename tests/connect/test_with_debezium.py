"""Debezium on a changing PostgreSQL, our table at the other end, both killed: equal to the table in the database."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kstreams.serdes import serde_of
from tests.connect.items_app import Item
from tests.support import postgres
from tests.support.debezium import Captured
from tests.support.kafka_cluster import can_run

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(900)]

APP = Path(__file__).parent / "items_app.py"
RUN = """
import sys
from kstreams.app import load_app, run
app = load_app(sys.argv[1], {"bootstrap.servers": sys.argv[2], "state.dir": sys.argv[3], "application.id": "items",
    "processing.guarantee": "exactly_once_v2", "commit.interval.ms": 100, "num.stream.threads": 2,
    "consumer.session.timeout.ms": 6000, "producer.transaction.timeout.ms": 10000})
run(app)
"""
TABLE = """CREATE TABLE items (id int PRIMARY KEY, count int NOT NULL, body text NOT NULL, price numeric(8,2), day date,
  at timestamptz, seen timestamp)"""
PARTITIONS = 2


@pytest.fixture
def captured() -> Iterator[Captured]:
    if not (can_run() and postgres.can_run()):
        pytest.skip("needs Java, Maven once, and a PostgreSQL server")
    with Captured() as systems:
        yield systems


class Application:
    """The application in a process of its own."""

    def __init__(self, bootstrap_servers: str, state: Path) -> None:
        self._command = [sys.executable, "-c", RUN, str(APP), bootstrap_servers, str(state)]
        self._log = (state.parent / "application.log").open("ab")
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, cwd=Path(__file__).parents[2], stdout=self._log, stderr=self._log)

    def kill_and_start(self) -> None:
        assert self._process.poll() is None, Path(self._log.name).read_text()[-3000:]
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = self._started()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait()
        self._log.close()


class Changes(threading.Thread):
    """Random transactions in the database: rows that come, change, move to another key and go."""

    def __init__(self, url: str, seed: int, transactions: int) -> None:
        super().__init__()
        self._url = url
        self._random = random.Random(seed)
        self._transactions = transactions

    def run(self) -> None:
        import psycopg

        with psycopg.connect(self._url) as database:
            for _ in range(self._transactions):
                for _ in range(self._random.randint(1, 12)):
                    self._change(database)
                database.commit()

    def _change(self, database: Any) -> None:
        key = self._random.randrange(400)
        body = chr(self._random.randrange(97, 123)) * self._random.choice([3, 3000])
        price = self._random.randrange(-99_999, 99_999) / 100
        insert = """INSERT INTO items VALUES (%s, 1, %s, %s, '2026-01-02', '2026-01-02 03:04:05.678901Z',
          '2026-01-02 03:04:05.678901') ON CONFLICT (id) DO UPDATE SET body = excluded.body, price = excluded.price"""
        chosen = self._random.random()
        if chosen < 0.3:
            database.execute(insert, (key, body, price))
        elif chosen < 0.8:
            database.execute("UPDATE items SET count = count + 1 WHERE id = %s", (key,))  # leaves the body unchanged
        elif chosen < 0.9:
            database.execute("DELETE FROM items WHERE id = %s", (key,))
        else:
            move = """UPDATE items SET id = id + 1000 WHERE id = %s
              AND NOT EXISTS (SELECT FROM items WHERE id = %s)"""
            database.execute(move, (key, key + 1000))


def rows_of_database(captured: Captured) -> dict[int, Item]:
    rows = captured.database.execute(b"SELECT id, count, body, price, day, at, seen FROM items").fetchall()
    return {row[0]: Item(*row) for row in rows}


class Rows:
    """The table that the output of the application makes, read by Kafka's own client."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {"bootstrap.servers": bootstrap_servers, "group.id": "judge", "isolation.level": "read_committed"}
        self._consumer = Consumer({**settings, "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        self.table: dict[int, Item] = {}
        self.messages = 0

    def read(self) -> None:
        serde = serde_of(Item)
        while True:
            message = self._consumer.poll(1)
            if message is None:
                return
            assert not message.error(), message.error()
            self.messages += 1
            key = int.from_bytes(message.key(), "big")
            value = message.value()
            self.table.pop(key, None)
            if value is not None:
                self.table[key] = serde.deserialize(value)

    def close(self) -> None:
        self._consumer.close()


def copies(captured: Captured) -> int:
    """How many events were written more than once, by key and LSN."""
    counts = Counter(
        (message.key(), msgspec.json.decode(message.value())["source"]["lsn"])
        for message in captured.read("shop.public.items", 1_000_000, seconds=20)
        if message.value() is not None
    )
    return sum(counts.values()) - len(counts)


@pytest.mark.parametrize("kills", [4])
def test_the_table_equals_the_database_however_often_both_are_killed(
    captured: Captured, tmp_path: Path, kills: int
) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    create_topics(captured)
    captured.execute(TABLE)
    captured.execute("ALTER TABLE items ALTER COLUMN body SET STORAGE EXTERNAL")
    captured.execute(
        "INSERT INTO items (id, count, body) SELECT n, 0, repeat('s', 3000) FROM generate_series(0, 199) n"
    )
    captured.capture("shop", {"table.include.list": "public.items"})
    application = Application(captured.kafka.bootstrap_servers, tmp_path / "state")
    changes = Changes(captured.postgres.url, seed, 6_000)
    changes.start()
    rows = Rows(captured.kafka.bootstrap_servers, "rows")
    try:
        for _ in range(kills):
            time.sleep(moments.uniform(1, 4))
            captured.connect.kill()
            captured.connect.start()
            time.sleep(moments.uniform(0, 3))
            application.kill_and_start()
        changes.join()
        expected = rows_of_database(captured)
        deadline = time.monotonic() + 240
        while rows.table != expected and time.monotonic() < deadline:
            rows.read()
        differing = {key for key in rows.table | expected if rows.table.get(key) != expected.get(key)}
        assert not differing, (sorted(differing), (tmp_path / "application.log").read_text()[-3000:])
        print(f"{len(expected)} rows, {rows.messages} updates, {copies(captured)} copies of events")
    finally:
        rows.close()
        application.stop()


def create_topics(captured: Captured) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": captured.kafka.bootstrap_servers})
    topics = [NewTopic("shop.public.items", 1, 1), NewTopic("rows", PARTITIONS, 1)]
    for created in admin.create_topics(topics).values():
        created.result()

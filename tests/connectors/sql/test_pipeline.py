"""From a table that changes to a topic and to another table, while the process and the database are killed.

Both tables are read by psycopg. A seed repeats the moments.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from kstreams.serdes import serde_of
from kstreams.testing.connectors import Order
from tests.connectors.running import log_with_topics, topic_rows
from tests.connectors.sql.databases import PostgresDatabase
from tests.support.postgres import NEEDED, Postgres, can_run

ROOT = Path(__file__).parents[3]
_CREATE = (
    "CREATE TABLE orders (id int8 PRIMARY KEY, name text, amount float8, changed timestamptz);"
    "CREATE INDEX ON orders (changed, id);"
)
_INSERT = (
    "INSERT INTO orders SELECT n, 'order ' || n, n * 1.5, timestamptz '2024-01-01' + n * interval '1 s' "
    "FROM generate_series(%s::int8, %s::int8) AS n"
)
_ORDERS = "SELECT id, name, amount FROM orders ORDER BY id"
_COPIES = "SELECT id, name, amount FROM copies ORDER BY id"


def copy_with_kills(folder: Path, rows: int, process_kills: int, server_kills: int) -> None:
    if not can_run():
        pytest.skip(NEEDED)
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    moments = random.Random(seed)
    acts = ["process"] * process_kills + ["server"] * server_kills
    moments.shuffle(acts)
    with Postgres({"fsync": "on"}) as server:
        database = PostgresDatabase(server, "shop")
        database.rows(_CREATE)
        command = [sys.executable, "-m", "tests.connectors.sql.pipeline_process", str(folder), database.url]
        process = started(command)
        try:
            inserted = 0
            for number, act in enumerate([*acts, "end"]):
                last = rows * (number + 1) // (len(acts) + 1)
                with psycopg.connect(database.url) as connection:
                    connection.execute(_INSERT, [inserted + 1, last])
                inserted = last
                time.sleep(moments.uniform(0.0, 0.4))
                if act == "process":
                    process.kill()
                    process.wait()
                    process = started(command)
                if act == "server":
                    server.kill()
                    time.sleep(moments.uniform(0.0, 0.2))
                    server.launch()
            wait_for_copies(database, rows)
        finally:
            process.kill()
            process.wait()
        assert database.rows(_COPIES) == database.rows(_ORDERS)
        with log_with_topics(folder) as log:
            ids = [serde_of(Order).deserialize(value).id for _, value, _ in topic_rows(log) if value is not None]
        assert sorted(ids) == list(range(1, rows + 1))  # each row is one record


def started(command: list[str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"
    return process


def wait_for_copies(database: PostgresDatabase, rows: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        time.sleep(0.2)
        has_table = database.rows("SELECT to_regclass('copies') IS NOT NULL") == [(True,)]
        if has_table and database.rows("SELECT count(*) FROM copies") == [(rows,)]:
            return
    raise AssertionError(f"only {database.rows('SELECT count(*) FROM copies')} of {rows} rows arrived")


def test_a_table_is_copied_once_beside_kills(tmp_path: Path) -> None:
    copy_with_kills(tmp_path, rows=2_000, process_kills=1, server_kills=0)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_table_is_copied_once_beside_many_kills(tmp_path: Path) -> None:
    copy_with_kills(tmp_path, rows=100_000, process_kills=30, server_kills=30)

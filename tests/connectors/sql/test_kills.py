"""Processes and servers that are killed at random moments: the table has each row once. A seed repeats the moments."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.connectors.sql.databases import EmptyDatabase, PostgresDatabase
from tests.connectors.sql.writer_process import expected, write_all
from tests.support.postgres import NEEDED, Postgres, can_run

ROOT = Path(__file__).parents[3]
ROWS = {"upsert": "SELECT key, number, name FROM target", "insert": "SELECT number, name FROM target"}


def rows_are_exact(database: EmptyDatabase, mode: str, records: int) -> None:
    rows = database.rows(ROWS[mode])
    assert len(rows) == len(set(rows))
    assert set(rows) == expected(mode, records)


def kill_writers(database: EmptyDatabase, mode: str, records: int, kills: int) -> None:
    """Kill the writer at a random moment after a random number of commits, and let the last one end."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    moments = random.Random(seed)
    command = [sys.executable, "-m", "tests.connectors.sql.writer_process", database.url, mode, str(records)]
    for _ in range(kills):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(moments.randrange(5)):
                process.stdout.readline()
            time.sleep(moments.uniform(0.0, 0.03))
            process.kill()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    rows_are_exact(database, mode, records)


def test_killed_writers_write_each_row_once(postgres: EmptyDatabase) -> None:
    kill_writers(postgres, "upsert", records=20_000, kills=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["upsert", "insert"])
def test_writers_that_are_killed_often_write_each_row_once(database: EmptyDatabase, mode: str) -> None:
    kill_writers(database, mode, records=100_000, kills=30)


def kill_servers(mode: str, records: int, kills: int) -> None:
    """Crash the server while a writer writes: transactions are lost, or their outcome is not known to the writer."""
    if not can_run():
        pytest.skip(NEEDED)
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    moments = random.Random(seed)
    with Postgres({"fsync": "on"}) as server:
        database = PostgresDatabase(server, "target")
        moves = threading.Event()
        errors: list[BaseException] = []

        def run() -> None:
            try:
                write_all(database.url, mode, records, committed=lambda offset: moves.set())
            except BaseException as error:
                errors.append(error)

        writer = threading.Thread(target=run)
        writer.start()
        for _ in range(kills):
            moves.clear()
            moves.wait(10)  # at least one commit between two crashes
            time.sleep(moments.uniform(0.0, 0.08))
            server.kill()
            time.sleep(moments.uniform(0.0, 0.2))
            server.launch()
        writer.join()
        assert errors == []
        rows_are_exact(database, mode, records)


def test_a_server_that_crashes_has_each_row_once() -> None:
    kill_servers("upsert", records=15_000, kills=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["upsert", "insert"])
def test_a_server_that_crashes_often_has_each_row_once(mode: str) -> None:
    kill_servers(mode, records=100_000, kills=30)


def test_a_writer_whose_server_is_away_goes_on_when_it_is_back() -> None:
    if not can_run():
        pytest.skip(NEEDED)
    with Postgres() as server:
        database = PostgresDatabase(server, "target")
        server.kill()
        writer = threading.Thread(target=write_all, args=[database.url, "upsert", 2_000])
        writer.start()
        time.sleep(0.3)
        assert writer.is_alive()
        server.launch()
        writer.join()
        rows_are_exact(database, "upsert", 2_000)

"""A table of PostgreSQL and its changes into a topic by `ks.sources.postgres`, beside bare loops that only read.

Needs a PostgreSQL server: see tests/support/postgres.py. Each figure is rows a second, and microseconds of the CPU of
this process for each row, which other work on the machine does not change.
"""

from __future__ import annotations

import select
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from time import perf_counter, process_time

import msgspec
import psycopg

import kstreams as ks
from kstreams.connectors.connector import ConnectorTopic, SourceConnector
from kstreams.connectors.source_task import SourceTask
from kstreams.kernel.clock import SystemClock
from kstreams.log import open_log
from kstreams.serdes import serde_of
from tests.support.postgres import Postgres

ROWS = 400_000
ROWS_A_COMMIT = 50_000
TABLE = "CREATE TABLE trades (id int8 PRIMARY KEY, symbol text, price float8, size int, at timestamptz)"
INSERT = "INSERT INTO trades SELECT g, 'SYM' || g % 500, g / 7.0, g % 1000, now() FROM generate_series({}, {}) g"


class Trade(msgspec.Struct):
    """A row."""

    id: int
    symbol: str
    price: float
    size: int
    at: datetime


def run() -> dict[str, float]:
    """Rows a second, and microseconds of CPU."""
    figures: dict[str, float] = {}

    def measure(name: str, work: Callable[[], None]) -> None:
        began, cpu = perf_counter(), process_time()
        work()
        figures[f"{name}, rows/s"] = ROWS / (perf_counter() - began)
        figures[f"{name}, us of CPU"] = (process_time() - cpu) / ROWS * 1e6

    with Postgres() as server, psycopg.connect(server.url, autocommit=True) as database:
        database.execute(TABLE)
        database.execute(INSERT.format(1, ROWS))  # type: ignore[arg-type]
        database.execute("CREATE PUBLICATION bare FOR TABLE trades")
        database.execute("SELECT pg_create_logical_replication_slot('bare', 'pgoutput')")
        measure("bare COPY in the order of the key", lambda: _copy(server.url))
        with tempfile.TemporaryDirectory() as folder, open_log(Path(folder) / "log") as log:
            topic = ConnectorTopic("trades", serde_of(int), serde_of(Trade))
            source = ks.sources.postgres(server.url, "trades", Trade, key="id")
            connector = SourceConnector("app", "in", topic, source)
            with log.admin() as admin:
                admin.create_topic("trades", 2)
                admin.create_topic(connector.positions_topic, 1)
            with closing(SourceTask(connector, 0, log, SystemClock())) as task:
                measure("snapshot into a topic", lambda: _into_topic(task))
                database.execute(INSERT.format(ROWS + 1, 2 * ROWS))  # type: ignore[arg-type]
                measure("bare loop over pgoutput", lambda: _stream(server.url))
                measure("changes into a topic", lambda: _into_topic(task))
    return figures


def _into_topic(task: SourceTask) -> None:
    count = 0
    while count < ROWS:
        task.step()
        if task.uncommitted_rows >= min(ROWS_A_COMMIT, ROWS - count):
            count += task.uncommitted_rows
            task.commit()


def _copy(url: str) -> None:
    statement = "COPY (SELECT * FROM trades ORDER BY id) TO STDOUT (FORMAT csv)"
    with psycopg.connect(url) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
        assert sum(1 for _ in copy) == ROWS


def _stream(url: str) -> None:
    connection = psycopg.connect(url, replication="database", autocommit=True).pgconn
    options = b"(proto_version '1', publication_names 'bare')"
    connection.exec_(b"START_REPLICATION SLOT bare LOGICAL 0/0 " + options)
    count = 0
    while count < ROWS:
        length, message = connection.get_copy_data(1)
        if length > 0:
            count += message[0] == ord("w") and message[25] == ord("I")
        else:
            select.select([connection.socket], [], [], 0.1)
            connection.consume_input()
    connection.finish()


if __name__ == "__main__":
    for name, figure in run().items():
        print(f"{name:50} {figure:>12,.1f}")

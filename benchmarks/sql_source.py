"""Rows out of Postgres by `ks.sources.sql`, beside a bare loop over psycopg's cursor that makes Arrow columns.

Needs a PostgreSQL server: see tests/support/postgres.py.
"""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from time import perf_counter

import msgspec
import psycopg
import pyarrow as pa

import kstreams as ks
from tests.support.postgres import Postgres

ROWS = 400_000
BATCH = 10_000


class Trade(msgspec.Struct):
    """A row."""

    id: int
    symbol: str
    price: float
    at: datetime


def run() -> dict[str, float]:
    """Rows a second."""
    with Postgres() as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE trades (id int8 PRIMARY KEY, symbol text, price float8, at timestamptz)")
            connection.execute(
                "INSERT INTO trades SELECT n, 'symbol ' || n % 77, n * 0.25, now() - n * interval '1 ms' "
                f"FROM generate_series(1, {ROWS}) AS n"
            )
            connection.execute("CREATE INDEX ON trades (at, id)")
        return {
            "plain loop": _by_cursor(server.url),
            "ks.sources.sql, incrementing": _by_source(server.url, "incrementing"),
            "ks.sources.sql, timestamp+incrementing": _by_source(server.url, "timestamp+incrementing"),
        }


def _by_cursor(url: str) -> float:
    began = perf_counter()
    count = 0
    with psycopg.connect(url) as connection, connection.cursor("rows") as cursor:
        cursor.itersize = BATCH
        cursor.execute("SELECT id, symbol, price, at FROM trades ORDER BY id")
        while rows := cursor.fetchmany(BATCH):
            columns = [pa.array(values) for values in zip(*rows, strict=True)]
            count += len(columns[0])
    assert count == ROWS
    return ROWS / (perf_counter() - began)


def _by_source(url: str, mode: str) -> float:
    source = ks.sources.sql(
        url,
        table="trades",
        value=Trade,
        key="id",
        mode=mode,  # type: ignore[arg-type]
        incrementing_column="id",
        timestamp_column="at",
        batch_max_rows=BATCH,
    )
    began = perf_counter()
    count = 0
    with closing(source.open("trades", None)) as reader:
        while batch := reader.read():
            count += len(batch.values)
    assert count == ROWS
    return ROWS / (perf_counter() - began)

"""The contracts of sources and sinks, on each database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from uuid import uuid4

import duckdb
import psycopg
import pytest

import kstreams as ks
from kstreams.connectors import Sink, Source
from kstreams.testing.connectors import Order, SinkContract, SourceContract
from tests.support.postgres import Postgres

_ORDERS = "SELECT id, name, amount FROM orders"


class TestSqliteSink(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.sql(f"sqlite:///{folder}/orders.db", "orders", mode="upsert", key="id")

    def orders(self, folder: Path) -> list[Order]:
        with sqlite3.connect(folder / "orders.db") as connection:
            return [Order(*row) for row in connection.execute(_ORDERS)]


class TestDuckDbSink(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.sql(f"duckdb:///{folder}/orders.duckdb", "orders", mode="insert")

    def orders(self, folder: Path) -> list[Order]:
        with duckdb.connect(str(folder / "orders.duckdb")) as connection:
            return [Order(*row) for row in connection.execute(_ORDERS).fetchall()]


class TestPostgresSink(SinkContract):
    @pytest.fixture(autouse=True)
    def _database(self, postgres_server: Postgres) -> None:
        database = f"contract_{uuid4().hex}"
        with psycopg.connect(postgres_server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}")
        self._url = postgres_server.url.removesuffix("/postgres") + f"/{database}"

    def sink(self, folder: Path) -> Sink:
        return ks.sinks.postgres(self._url, "orders", upsert="id")

    def orders(self, folder: Path) -> list[Order]:
        with psycopg.connect(self._url) as connection:
            return [Order(*row) for row in connection.execute(_ORDERS)]


@pytest.mark.parametrize("mode", ["bulk", "incrementing", "timestamp", "timestamp+incrementing"])
class TestSqliteSource(SourceContract):
    @pytest.fixture(autouse=True)
    def _mode(self, mode: str) -> None:
        self._mode_name = mode

    def source(self, folder: Path) -> Source:
        with sqlite3.connect(folder / "orders.db") as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, name TEXT, at TEXT)")
            rows = [(number, f"order {number}", f"2024-05-06 00:00:{number // 3:02}") for number in range(25)]
            connection.executemany("INSERT OR IGNORE INTO orders VALUES (?, ?, ?)", rows)
        return ks.sources.sql(
            f"sqlite:///{folder}/orders.db",
            table="orders",
            key="id",
            key_type=int,
            mode=self._mode_name,  # type: ignore[arg-type]
            incrementing_column="id",
            timestamp_column="at",
            batch_max_rows=4,
        )

    def rows(self, folder: Path) -> list[object]:
        return [
            {"id": number, "name": f"order {number}", "at": f"2024-05-06 00:00:{number // 3:02}"}
            for number in range(25)
        ]

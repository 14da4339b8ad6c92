"""The contracts of sources and sinks, on each database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from uuid import uuid4

import duckdb
import psycopg
import pytest

import kstreams as ks
from kstreams.connectors import Sink
from kstreams.testing.connectors import Order, SinkContract
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

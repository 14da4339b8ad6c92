"""The contract of sources, on a table of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from kstreams.connectors import Source
from kstreams.testing.connectors import Order, SourceContract
from tests.connectors.postgres.databases import Database
from tests.connectors.postgres.test_changes import source


class TestPostgres(SourceContract):
    @pytest.fixture(autouse=True)
    def _orders(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kstreams.connectors.postgres.snapshot.MAX_ROWS", 10)
        database.run(
            "CREATE TABLE orders (id int PRIMARY KEY, name text NOT NULL, amount float8 NOT NULL)",
            "INSERT INTO orders SELECT g, 'order ' || g, g / 2.0 FROM generate_series(1, 35) g",
        )
        self._database = database

    def source(self, folder: Path) -> Source:
        return source(self._database, "orders", Order, key="id")

    def rows(self, folder: Path) -> list[object]:
        return [
            {"id": number, "name": name, "amount": amount}
            for number, name, amount in self._database.rows("SELECT * FROM orders")
        ]

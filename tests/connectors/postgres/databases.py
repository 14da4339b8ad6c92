"""Databases for tests of change capture: one server for all, a database for each test, and readers of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any

import psycopg

from kstreams.connectors import Source
from kstreams.connectors.postgres.position import lsn_of
from tests.support.postgres import Postgres


class Database:
    """A database of its own on a server, with a connection."""

    def __init__(self, server: Postgres, name: str) -> None:
        self.name = name
        self.url = f"{server.url.rpartition('/')[0]}/{name}"
        self._server = server
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self.connection = psycopg.connect(self.url, autocommit=True)

    def run(self, *statements: str) -> None:
        """Execute statements, each in a transaction of its own."""
        for statement in statements:
            self.connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()

    def value(self, query: str) -> Any:
        return self.rows(query)[0][0]

    def flushed_lsn(self) -> int:
        return int(self.value("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn"))

    def drop(self) -> None:
        """Remove the slots, and end the processes that read them."""
        of_database = "FROM pg_replication_slots WHERE database = current_database()"
        self.rows(f"SELECT pg_terminate_backend(active_pid) {of_database} AND active")
        while self.value(f"SELECT count(*) {of_database} AND active"):
            sleep(0.01)
        self.rows(f"SELECT pg_drop_replication_slot(slot_name) {of_database}")
        self.connection.close()


class Capture:
    """Reads a source as its worker does: batch by batch, each position committed after its records."""

    def __init__(self, database: Database, source: Source, position: Any = None) -> None:
        self.source = source
        self.position = position
        self._database = database
        (self._split,) = source.splits()
        self.reader = source.open(self._split, position)

    def read(self) -> list[tuple[Any, Any]]:
        """Return keys and values of everything that is committed in the database."""
        return [(key, value) for key, value, _ in self.records()]

    def records(self) -> list[tuple[Any, Any, Any]]:
        """Return keys, values and times of everything that is committed in the database."""
        records: list[tuple[Any, Any, Any]] = []
        end = self._database.flushed_lsn()
        while self.position is None or not self.position["tables"] or lsn_of(self.position["lsn"]) < end:
            records += self.next_records()
            if self.position is not None:
                self.reader.committed(self.position)
        return records

    def next_records(self) -> list[tuple[Any, Any, Any]]:
        """Return the records of one batch, which is not committed."""
        batch = self.reader.read()
        if batch is None:
            return []
        self.position = batch.position
        if not len(batch.values):
            return []
        assert batch.keys is not None
        assert batch.timestamps is not None
        columns = (batch.keys, batch.values, batch.timestamps)
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    def next_changes(self) -> list[tuple[Any, Any]]:
        """Wait for records. Return keys and values of their batch, which is not committed."""
        records: list[tuple[Any, Any, Any]] = []
        while not records:
            records = self.next_records()
        return [(key, value) for key, value, _ in records]

    def take(self, reads: int) -> list[tuple[Any, Any]]:
        """Return keys and values of so many batches, which are not committed."""
        return [(key, value) for _ in range(reads) for key, value, _ in self.next_records()]

    def reopen(self) -> None:
        """Close the reader, and open another one at the last position."""
        self.close()
        self.reader = self.source.open(self._split, self.position)

    def close(self) -> None:
        self.reader.close()


@contextmanager
def captured(database: Database, source: Source, position: Any = None) -> Iterator[Capture]:
    capture = Capture(database, source, position)
    try:
        yield capture
    finally:
        capture.close()

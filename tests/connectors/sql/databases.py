"""Databases for tests: where each is, and how its rows are read without kstreams and without SQLAlchemy."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Protocol

import duckdb
import psycopg

from tests.support.postgres import Postgres


class EmptyDatabase(Protocol):
    """An empty database."""

    name: str
    url: str

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query answers, or a statement does."""
        ...


class SqliteFile:
    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "target.db"
        self.url = f"sqlite:///{self._path}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self._path, timeout=30) as connection:
            answer = connection.execute(query).fetchall()
        connection.close()
        return answer


class DuckDbFile:
    name = "duckdb"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "target.duckdb"
        self.url = f"duckdb:///{self._path}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self._path)) as connection:
            return connection.execute(query).fetchall()


class PostgresDatabase:
    name = "postgres"

    def __init__(self, server: Postgres, database: str) -> None:
        self._server = server
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"')
        self.url = server.url.removesuffix("/postgres") + f"/{database}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            cursor = connection.execute(query)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

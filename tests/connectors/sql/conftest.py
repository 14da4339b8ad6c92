"""The databases that the tests of SQL connectors run on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.sql.databases import DuckDbFile, EmptyDatabase, PostgresDatabase, SqliteFile
from tests.support.postgres import NEEDED, Postgres, can_run

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    if not can_run():
        pytest.skip(NEEDED)
    with Postgres() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: Postgres) -> EmptyDatabase:
    return PostgresDatabase(postgres_server, f"test_{next(_NUMBERS)}")


@pytest.fixture(params=["postgres", "sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> EmptyDatabase:
    if request.param == "postgres":
        return request.getfixturevalue("postgres")
    return SqliteFile(tmp_path) if request.param == "sqlite" else DuckDbFile(tmp_path)

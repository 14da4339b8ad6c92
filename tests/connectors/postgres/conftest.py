"""A server for all tests, and a database for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.postgres import Postgres, can_run

_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    if not can_run():
        pytest.skip("there is no PostgreSQL server: install Debian's package `postgresql`")
    with Postgres() as server:
        yield server
        server.kill()  # its data is not needed any more


@pytest.fixture
def database(postgres: Postgres) -> Iterator[object]:
    pytest.importorskip("psycopg")
    from tests.connectors.postgres.databases import Database

    database = Database(postgres, f"test_{next(_numbers)}")
    try:
        yield database
    finally:
        database.drop()

"""Errors of PostgreSQL that no retry heals end a connector at once, with what to do; others are tried again."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.connectors import Sink, Source
from kstreams.testing.connectors import Order
from tests.connectors.ending import assert_sink_ends, assert_source_ends
from tests.connectors.running import copy_in, log_with_topics, running, wait_until, worker_to
from tests.connectors.sql.databases import EmptyDatabase
from tests.connectors.systems import Numbered
from tests.support.postgres import NEEDED, Postgres, can_run

PASSWORD = r"password authentication failed.*[Cc]heck the user, the password"
DATABASE = r'database "nowhere" does not exist.*Create the database, or correct its name'


def with_password(url: str, password: str) -> str:
    user, _, place = url.rpartition("@")
    return f"{user.rpartition(':')[0]}:{password}@{place}"


def in_database(url: str, name: str) -> str:
    return f"{url.rpartition('/')[0]}/{name}"


def as_ann(database: EmptyDatabase) -> str:
    """The address for a user who may connect, and no more."""
    database.rows("DO $$ BEGIN CREATE ROLE ann LOGIN PASSWORD 'secret'; EXCEPTION WHEN duplicate_object THEN END $$")
    return database.url.replace("//postgres:postgres@", "//ann:secret@")


def table_sink(url: str) -> Sink:
    return ks.sinks.postgres(url, "orders", upsert="id")


def table_source(url: str) -> Source:
    return ks.sources.sql(url, table="orders", value=Order, key="id", mode="incrementing", incrementing_column="id")


def changes(url: str) -> Source:
    return ks.sources.postgres(url, "public.orders", Order, key="id")


def test_a_sink_ends_with_a_wrong_login(postgres: EmptyDatabase, tmp_path: Path) -> None:
    assert_sink_ends(tmp_path, table_sink(with_password(postgres.url, "secret")), PASSWORD)
    assert_sink_ends(tmp_path, table_sink(in_database(postgres.url, "nowhere")), DATABASE)


@pytest.mark.parametrize("source", [table_source, changes])
def test_a_source_ends_with_a_wrong_login(source: type[Source], postgres: EmptyDatabase, tmp_path: Path) -> None:
    assert_source_ends(tmp_path, source(with_password(postgres.url, "secret")), PASSWORD)
    assert_source_ends(tmp_path, source(in_database(postgres.url, "nowhere")), DATABASE)


def test_a_missing_right_is_named(postgres: EmptyDatabase, tmp_path: Path) -> None:
    postgres.rows("CREATE TABLE orders (id BIGINT PRIMARY KEY, name TEXT, amount FLOAT)")
    url = as_ann(postgres)
    assert_source_ends(tmp_path, table_source(url), r"permission denied for table orders.*Grant the right")
    assert_source_ends(tmp_path, changes(url), r"may not change publications.*CREATE PUBLICATION")
    postgres.rows("REVOKE CREATE ON SCHEMA public FROM public")
    assert_sink_ends(tmp_path, table_sink(url), r"permission denied for schema public.*Grant the right")


def test_a_missing_table_is_named(postgres: EmptyDatabase, tmp_path: Path) -> None:
    assert_source_ends(tmp_path, table_source(postgres.url), r'relation "orders" does not exist.*Create the table')


@pytest.mark.slow
def test_a_server_that_is_away_is_tried_again(tmp_path: Path) -> None:
    if not can_run():
        pytest.skip(NEEDED)
    with Postgres() as server, log_with_topics(tmp_path) as log, ExitStack() as resources:
        copy_in(log, Numbered(3, ["a"]))
        server.kill()
        worker = worker_to(log, table_sink(server.url), resources)
        with running(worker):
            wait_until(lambda: sum(status.retries for status in worker.statuses().values()) >= 4)
            server.launch()
            wait_until(lambda: sum(status.rows for status in worker.statuses().values()) == 3)

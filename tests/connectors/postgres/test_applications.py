"""Applications read tables of PostgreSQL as tables and as streams of changes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import kstreams as ks
from kstreams.errors import StoreNotAvailableError
from tests.connectors.postgres.databases import Database
from tests.connectors.postgres.test_changes import TABLE, Order, source
from tests.connectors.test_applications import run_to_end
from tests.native.world import World


def test_a_table_of_the_database_is_a_table_of_the_application(database: Database, tmp_path: Path) -> None:
    database.run(TABLE, "INSERT INTO orders SELECT g, 'order ' || g, g FROM generate_series(1, 100) g")
    builder = ks.StreamsBuilder()
    builder.table(source(database, "orders", Order, key="id"), materialized=ks.Materialized("orders"))
    with ks.KafkaStreams(builder, World(tmp_path).settings) as streams:
        streams.start()
        await_rows(streams, database)
        with database.connection.transaction():
            database.run(
                "UPDATE orders SET amount = amount + 1 WHERE id % 2 = 0",
                "DELETE FROM orders WHERE id % 3 = 0",
                "UPDATE orders SET id = id + 1000 WHERE id % 5 = 0",
            )
        await_rows(streams, database)


def await_rows(streams: ks.KafkaStreams, database: Database) -> None:
    """Wait until the store has the rows of the table."""
    expected = {number: Order(number, name, amount) for number, name, amount in database.rows("SELECT * FROM orders")}
    deadline = monotonic() + 60
    rows: dict[int, Order] = {}
    while rows != expected and monotonic() < deadline:
        sleep(0.05)
        with suppress(StoreNotAvailableError):  # while tasks are assigned
            rows = {key: stored.value for key, stored in streams.store("orders").all()}
    assert rows == expected


def test_a_bounded_run_reads_all_changes_that_the_database_has(database: Database, tmp_path: Path) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (0, 'of the snapshot')")
    builder = ks.StreamsBuilder()
    orders = builder.stream(source(database, "orders", Order, key="id"), name="orders")
    orders.map_values(lambda order: order.name, value=str).to("names")
    world = World(tmp_path)
    for last in (20_000, 40_000):
        run_to_end(builder, world)
        assert len(world.rows("names", key=int)) == database.value("SELECT count(*) FROM orders")
        database.run(f"INSERT INTO orders SELECT g, 'x', g FROM generate_series({last - 19_999}, {last}) g")

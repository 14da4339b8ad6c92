"""With `ks.RowChange`, records are changes with the rows before and after them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.connectors.columns import ValueColumns
from kstreams.errors import ConnectorError
from kstreams.serdes import serde_of
from tests.connectors.postgres.databases import Capture, Database
from tests.connectors.postgres.test_changes import TABLE, Order, source

FULL = "ALTER TABLE orders REPLICA IDENTITY FULL"


def changes_in(capture: Capture) -> list[tuple[Any, ks.RowChange[Order]]]:
    """Return the changes, as an application reads them from the topic."""
    serde = serde_of(ks.RowChange[Order])
    records = []
    while not records:
        batch = capture.reader.read()
        if batch is not None and len(batch.values):
            values = ValueColumns(serde).encode(batch.values)
            records = list(zip(batch.keys.to_pylist(), serde.decode_rows(values), strict=True))
    return records


def test_a_change_has_both_rows_operation_transaction_and_place(database: Database) -> None:
    database.run(TABLE, FULL, "INSERT INTO orders VALUES (1, 'a', 1.5)")
    capture = Capture(database, source(database, "orders", ks.RowChange[Order], key_type=int))
    ((key, read),) = changes_in(capture)
    assert (key, read.operation, read.before, read.after) == (1, "read", None, Order(1, "a", 1.5))
    assert read.source.snapshot == "true"
    with database.connection.transaction():
        database.run("INSERT INTO orders VALUES (2, 'b', 2)", "UPDATE orders SET name = NULL WHERE id = 1")
        transaction = database.value("SELECT pg_current_xact_id()::text::int8")
    changes = changes_in(capture)
    assert [(key, c.operation, c.before, c.after) for key, c in changes] == [
        (2, "create", None, Order(2, "b", 2.0)),
        (1, "update", Order(1, "a", 1.5), Order(1, None, 1.5)),
    ]
    assert {change.source.tx_id for _, change in changes} == {transaction}
    assert {(change.source.schema, change.source.table) for _, change in changes} == {("public", "orders")}
    lsns = [change.source.lsn for _, change in changes]
    assert lsns == sorted(set(lsns))
    assert read.source.ts_ms <= changes[0][1].source.ts_ms
    with database.connection.transaction():
        database.run("UPDATE orders SET id = 20 WHERE id = 2", "DELETE FROM orders WHERE id = 1", "TRUNCATE orders")
    assert [(key, c.operation, c.before, c.after) for key, c in changes_in(capture)] == [
        (2, "delete", Order(2, "b", 2.0), None),
        (20, "create", None, Order(20, "b", 2.0)),
        (1, "delete", Order(1, None, 1.5), None),
        (None, "truncate", None, None),
    ]
    capture.close()


def test_several_tables_are_in_the_order_of_changes(database: Database) -> None:
    database.run(
        TABLE,
        "CREATE TABLE archive (LIKE orders INCLUDING ALL)",
        FULL,
        "ALTER TABLE archive REPLICA IDENTITY FULL",
        "INSERT INTO archive VALUES (1, 'old', 0)",
    )
    tables = ["orders", "archive"]
    capture = Capture(database, source(database, tables, ks.RowChange[Order], key_type=int))  # type: ignore[arg-type]
    assert [(change.source.table, change.operation) for _, change in changes_in(capture)] == [("archive", "read")]
    with database.connection.transaction():
        for number in range(2, 6):
            database.run(f"INSERT INTO orders VALUES ({number}, 'new', 0)", f"INSERT INTO archive VALUES ({number})")
    assert [(key, change.source.table) for key, change in changes_in(capture)] == [
        (number, table) for number in range(2, 6) for table in tables
    ]
    capture.close()


def test_changes_need_the_row_before_them(database: Database) -> None:
    database.run(TABLE)
    with pytest.raises(ConnectorError, match=r'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL'):
        Capture(database, source(database, "orders", ks.RowChange[Order]))
    with pytest.raises(ConnectorError, match=r"The rows of a, b may have the same keys"):
        ks.sources.postgres(database.url, ["a", "b"], Order)


class Typed(msgspec.Struct):
    id: int
    doc: dict[str, int]
    tags: list[str | None]


def test_nested_values_are_written_to_topics(database: Database) -> None:
    database.run(
        "CREATE TABLE typed (id int PRIMARY KEY, doc jsonb, tags text[])",
        "INSERT INTO typed VALUES (1, '{\"a\": 1}', '{x,NULL}')",
    )
    capture = Capture(database, source(database, "typed", Typed, key="id"))
    batch = capture.reader.read()
    assert batch is not None
    serde = serde_of(Typed)
    assert serde.decode_rows(ValueColumns(serde).encode(batch.values)) == [Typed(1, {"a": 1}, ["x", None])]
    capture.close()

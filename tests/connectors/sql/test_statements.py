"""The statements of databases that no server of these tests has, by their text."""

from __future__ import annotations

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import mssql, mysql

from kstreams.connectors.sql.connections import AlchemyConnection
from kstreams.connectors.sql.database import Database
from kstreams.connectors.sql.loaders import StatementLoader
from kstreams.connectors.sql.offsets import TargetOffsets
from kstreams.connectors.sql.query import Query
from kstreams.connectors.sql.table import TargetTable

COLUMNS = pa.schema([("item", pa.string()), ("amount", pa.decimal128(9, 2)), ("at", pa.timestamp("us", "UTC"))])
PRICES = TargetTable("prices", "shop", ("item",))
MYSQL = mysql.dialect()  # type: ignore[no-untyped-call]


def text(statement: sa.ClauseElement, dialect: sa.Dialect = MYSQL) -> str:
    return " ".join(str(statement.compile(dialect=dialect)).split())


def test_mysql_creates_a_table() -> None:
    assert text(PRICES.create(COLUMNS)) == (
        "CREATE TABLE `shop`.`prices` ( `item` VARCHAR(255) NOT NULL, `amount` NUMERIC(38, 10), `at` DATETIME(6), "
        "PRIMARY KEY (`item`) )"
    )
    assert "CREATE TABLE `o``; DROP TABLE x; --`" in text(
        sa.schema.CreateTable(TargetOffsets("o`; DROP TABLE x; --", None).table)
    )


def test_mysql_adds_a_column() -> None:
    column = TargetTable("prices", None, ()).add_column(pa.field("co`lo:u%r", pa.string()), MYSQL)
    assert text(column) == "ALTER TABLE `prices` ADD COLUMN `co``lo:u%%r` TEXT"  # the driver reads %% as %


def test_mysql_changes_the_row_of_a_key() -> None:
    assert text(PRICES.change(COLUMNS, MYSQL, upsert=True)) == (
        "INSERT INTO `shop`.`prices` (`item`, `amount`, `at`) VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE "
        "`amount` = VALUES(`amount`), `at` = VALUES(`at`)"
    )
    only_key = pa.schema([("item", pa.string())])
    assert text(PRICES.change(only_key, MYSQL, upsert=True)).endswith("ON DUPLICATE KEY UPDATE `item` = VALUES(`item`)")


def test_mysql_deletes_the_row_of_a_key() -> None:
    assert text(PRICES.delete_one(COLUMNS)) == "DELETE FROM `shop`.`prices` WHERE `shop`.`prices`.`item` = %s"


def test_mysql_reads_rows_after_a_position(tmp_path: object) -> None:
    connection = AlchemyConnection(Database(f"sqlite:///{tmp_path}/x.db"), read_only=True)
    query = Query(Database("mysql://db"), sa.table("trades"), ("id",), (), incrementing="id", timestamp="", delay_ms=0)
    assert text(query.select({"incrementing": 3}, connection)) == (
        "SELECT `id` FROM trades WHERE `id` > %s ORDER BY `id`"
    )
    connection.close()


def test_a_database_without_upsert_deletes_before_it_inserts() -> None:
    dialect = mssql.dialect()  # type: ignore[no-untyped-call]
    assert not PRICES.has_upsert(dialect)
    assert text(PRICES.change(COLUMNS, dialect, upsert=True), dialect).startswith("INSERT INTO [shop].[prices]")


def test_delete_and_insert_is_an_upsert(tmp_path: object) -> None:
    connection = AlchemyConnection(Database(f"sqlite:///{tmp_path}/x.db"), read_only=False)

    class OldTable(TargetTable):
        """SQLite as a database without ON CONFLICT."""

        def has_upsert(self, dialect: sa.Dialect) -> bool:
            return False

    table = OldTable("prices", None, ("item",))
    columns = pa.schema([("item", pa.string()), ("amount", pa.int64())])
    connection.execute(table.create(columns))
    loader = StatementLoader(connection, table, upsert=True)
    for amount in (1, 2):
        loader.change(pa.table({"item": ["tea", f"other {amount}"], "amount": [amount, 0]}, columns))
    rows = connection.execute(sa.text("SELECT * FROM prices ORDER BY item")).rows
    assert [tuple(row) for row in rows] == [("other 1", 0), ("other 2", 0), ("tea", 2)]
    connection.close()

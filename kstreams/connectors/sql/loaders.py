"""Loaders: how the rows of a batch come into a table. By COPY, from Arrow, or by a statement for each row."""

from __future__ import annotations

import io
from typing import Protocol

import pyarrow as pa
import pyarrow.csv
import sqlalchemy as sa

from kstreams.connectors.sql.changes import plain_columns
from kstreams.connectors.sql.connections import AlchemyConnection, Connection, DuckDbConnection
from kstreams.connectors.sql.table import TargetTable

_BATCH = "kstreams_batch"
_DELETED = "kstreams_deleted"


class Loader(Protocol):
    """Writes rows to one table within the transaction of its connection."""

    def begin(self) -> None:
        """Set up the transaction before its first row."""
        ...

    def prepare(self, columns: pa.Schema) -> None:
        """Note the columns of the rows that follow. The table has these columns."""
        ...

    def change(self, rows: pa.Table) -> None:
        """Insert rows, or change the rows of their keys."""
        ...

    def delete(self, keys: pa.Table) -> None:
        """Delete the rows of keys."""
        ...


def loader_of(connection: Connection, table: TargetTable, *, upsert: bool) -> Loader:
    """Return the fastest loader for a connection."""
    if isinstance(connection, DuckDbConnection):
        return ArrowLoader(connection, table, upsert=upsert)
    if isinstance(connection, AlchemyConnection) and connection.dialect.driver == "psycopg":
        return CopyLoader(connection, table, upsert=upsert)
    if isinstance(connection, AlchemyConnection):
        return StatementLoader(connection, table, upsert=upsert)
    raise TypeError(f"no loader for {type(connection).__name__}")


class CopyLoader:
    """Loads rows into Postgres by COPY: directly if rows are inserted, by a temporary table if keys are changed."""

    def __init__(self, connection: AlchemyConnection, table: TargetTable, *, upsert: bool) -> None:
        self._connection = connection
        self._table = table
        self._upsert = upsert
        self._columns = pa.schema([])

    def begin(self) -> None:
        """Let the database check constraints row by row, so that none refuses the commit of all."""
        self._connection.driver.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def prepare(self, columns: pa.Schema) -> None:
        has_staging = columns.names == self._columns.names
        self._columns = columns
        if self._upsert and not has_staging:
            self._create_staging(_BATCH, columns.names)
            self._create_staging(_DELETED, list(self._table.key))

    def _create_staging(self, name: str, names: list[str]) -> None:
        """Create a temporary table whose columns have the types of the target, so that COPY converts each value."""
        target = self._table.declared(self._columns)
        columns = sa.select(*[target.c[column] for column in names]).where(sa.false())
        query = columns.compile(dialect=self._connection.dialect)
        self._connection.driver.execute(f"DROP TABLE IF EXISTS pg_temp.{name}")
        self._connection.driver.execute(f"CREATE TEMPORARY TABLE {name} AS {query}".replace("%%", "%"))

    def change(self, rows: pa.Table) -> None:
        columns = self._columns
        if not self._upsert:
            self._copy(self._connection.dialect.identifier_preparer.format_table(self._table.declared(columns)), rows)
            return
        self._fill(_BATCH, rows)
        staged = _staged(_BATCH, rows.column_names)
        self._connection.execute(self._table.change_from(columns, staged, self._connection.dialect, upsert=True))

    def delete(self, keys: pa.Table) -> None:
        self._fill(_DELETED, keys)
        self._connection.execute(self._table.delete_from(self._columns, _staged(_DELETED, keys.column_names)))

    def _fill(self, staging: str, rows: pa.Table) -> None:
        self._connection.driver.execute(f"TRUNCATE pg_temp.{staging}")
        self._copy(f"pg_temp.{staging}", rows)

    def _copy(self, target: str, rows: pa.Table) -> None:
        quote = self._connection.dialect.identifier_preparer.quote_identifier
        names = ", ".join(quote(name) for name in rows.column_names).replace("%%", "%")
        with (
            self._connection.driver.cursor() as cursor,
            cursor.copy(f"COPY {target.replace('%%', '%')} ({names}) FROM STDIN (FORMAT csv)") as copy,
        ):
            copy.write(_csv(rows))


def _staged(name: str, columns: list[str]) -> sa.TableClause:
    return sa.table(name, *[sa.column(sa.quoted_name(column, True)) for column in columns])


def _csv(rows: pa.Table) -> bytes:
    """Return rows as Postgres reads CSV: a null is empty, an empty text is quoted, bytes are hexadecimal."""
    text = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False)
    pyarrow.csv.write_csv(_hexadecimal(plain_columns(rows)), text, options)
    return text.getvalue()


def _hexadecimal(rows: pa.Table) -> pa.Table:
    for index, field in enumerate(rows.schema):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            texts = [None if value is None else rf"\x{value.hex()}" for value in rows[index].to_pylist()]
            rows = rows.set_column(index, field.name, pa.array(texts, pa.string()))
    return rows


class ArrowLoader:
    """Loads rows into DuckDB, which reads Arrow tables in place."""

    def __init__(self, connection: DuckDbConnection, table: TargetTable, *, upsert: bool) -> None:
        self._connection = connection
        self._table = table
        self._upsert = upsert
        self._columns = pa.schema([])

    def begin(self) -> None:
        """Do nothing."""

    def prepare(self, columns: pa.Schema) -> None:
        self._columns = columns

    def change(self, rows: pa.Table) -> None:
        batch = self._register(_BATCH, rows)
        statement = self._table.change_from(self._columns, batch, self._connection.dialect, upsert=self._upsert)
        self._connection.execute(statement)

    def delete(self, keys: pa.Table) -> None:
        deleted = self._register(_DELETED, keys)
        self._connection.execute(self._table.delete_from(self._columns, deleted))

    def _register(self, name: str, rows: pa.Table) -> sa.TableClause:
        self._connection.driver.register(name, plain_columns(rows))
        return _staged(name, rows.column_names)


class StatementLoader:
    """Loads rows by a statement of SQLAlchemy with the parameters of many rows, in any database."""

    def __init__(self, connection: AlchemyConnection, table: TargetTable, *, upsert: bool) -> None:
        self._connection = connection
        self._table = table
        self._upsert = upsert
        self._columns = pa.schema([])

    def begin(self) -> None:
        """Do nothing."""

    def prepare(self, columns: pa.Schema) -> None:
        self._columns = columns

    def change(self, rows: pa.Table) -> None:
        plain = plain_columns(rows)
        dialect = self._connection.dialect
        if self._upsert and not self._table.has_upsert(dialect):
            self.delete(rows.select(self._table.key))
        statement = self._table.change(plain.schema, dialect, upsert=self._upsert)
        self._connection.execute_many(statement, plain.to_pylist())

    def delete(self, keys: pa.Table) -> None:
        names = [f"key_{index}" for index in range(len(self._table.key))]
        self._connection.execute_many(self._table.delete_one(keys.schema), keys.rename_columns(names).to_pylist())

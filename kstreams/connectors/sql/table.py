"""`TargetTable`: the table that a sink writes to, and the statements that create and change it.

Names come into statements by SQLAlchemy as quoted identifiers, and values as parameters, so that neither can be SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

SqlType: TypeAlias = sa.types.TypeEngine[Any]

_LONGEST_KEY_TEXT = 255
"""Characters of a text column in a key: MySQL has no keys of unlimited length."""


@dataclass(frozen=True)
class TargetTable:
    """The table that a sink writes to.

    Parameters
    ----------
    name : str
    schema : str or None
        None for the schema that the database takes by default.
    key : tuple of str
        The columns of the key; none if the table has no key.
    """

    name: str
    schema: str | None
    key: tuple[str, ...]

    def declared(self, columns: pa.Schema) -> sa.Table:
        """Return the table with columns of Arrow types."""
        return sa.Table(
            sa.quoted_name(self.name, True),
            sa.MetaData(schema=None if self.schema is None else sa.quoted_name(self.schema, True)),
            *[self._column(field) for field in columns],
        )

    def _column(self, field: pa.Field) -> sa.Column[object]:
        is_key = field.name in self.key
        kind: SqlType = sql_type(field.type)
        if is_key and isinstance(kind, sa.Text):
            kind = sa.Text().with_variant(sa.String(_LONGEST_KEY_TEXT), "mysql", "mariadb", "oracle", "mssql")
        name = sa.quoted_name(field.name, True)
        return sa.Column(name, kind, primary_key=is_key, nullable=not is_key, autoincrement=False)

    def create(self, columns: pa.Schema) -> sa.schema.CreateTable:
        """Return the statement that creates the table."""
        return sa.schema.CreateTable(self.declared(columns))

    def add_column(self, field: pa.Field, dialect: sa.Dialect) -> sa.TextClause:
        """Return the statement that adds a column."""
        table = dialect.identifier_preparer.format_table(self.declared(pa.schema([field])))
        column = dialect.ddl_compiler(dialect, None).get_column_specification(self._column(field))  # type: ignore[arg-type]
        statement = f"ALTER TABLE {table} ADD COLUMN {column}".replace(":", r"\:")
        doubles_percents = dialect.paramstyle in {"format", "pyformat"}
        return sa.text(statement.replace("%%", "%") if doubles_percents else statement)

    def change(self, columns: pa.Schema, dialect: sa.Dialect, *, upsert: bool) -> sa.Insert:
        """Return the statement that inserts a row, or changes the row of its key.

        A dialect without such a statement inserts only: its rows are deleted before.
        """
        if not upsert or not self.has_upsert(dialect):
            return sa.insert(self.declared(columns))
        if dialect.name in {"mysql", "mariadb"}:
            return self._on_duplicate_key(columns)
        return self._on_conflict(columns, dialect)

    def has_upsert(self, dialect: sa.Dialect) -> bool:
        """Return whether a dialect can insert or update in one statement."""
        return dialect.name in {"postgresql", "duckdb", "sqlite", "mysql", "mariadb"}

    def _on_conflict(self, columns: pa.Schema, dialect: sa.Dialect) -> sa.Insert:
        insert_of_dialect = sqlite.insert if dialect.name == "sqlite" else postgresql.insert
        insert = insert_of_dialect(self.declared(columns))
        updated = {name: insert.excluded[name] for name in columns.names if name not in self.key}
        if not updated:
            return insert.on_conflict_do_nothing(index_elements=self.key)
        return insert.on_conflict_do_update(index_elements=self.key, set_=updated)

    def _on_duplicate_key(self, columns: pa.Schema) -> sa.Insert:
        insert = mysql.insert(self.declared(columns))
        updated = [name for name in columns.names if name not in self.key] or list(self.key)
        return insert.on_duplicate_key_update({name: insert.inserted[name] for name in updated})

    def change_from(self, columns: pa.Schema, rows: sa.FromClause, dialect: sa.Dialect, *, upsert: bool) -> sa.Insert:
        """Return the statement that inserts or changes rows by the rows of another table."""
        names = columns.names
        statement = self.change(columns, dialect, upsert=upsert)
        return statement.from_select(names, sa.select(*[rows.c[name] for name in names]).where(sa.true()))

    def delete_one(self, columns: pa.Schema) -> sa.Delete:
        """Return the statement that deletes the row of a key, whose values are the parameters `key_0`, `key_1`, ..."""
        table = self.declared(columns)
        conditions = [table.c[name] == sa.bindparam(f"key_{index}") for index, name in enumerate(self.key)]
        return sa.delete(table).where(*conditions)

    def delete_from(self, columns: pa.Schema, rows: sa.FromClause) -> sa.Delete:
        """Return the statement that deletes the rows whose keys are in another table."""
        table = self.declared(columns)
        return sa.delete(table).where(*[table.c[name] == rows.c[name] for name in self.key])


_DECIMAL = sa.Numeric().with_variant(sa.Numeric(38, 10), "duckdb", "mysql", "mariadb", "oracle", "mssql")
"""A decimal of any precision where the database has one."""


def sql_type(kind: pa.DataType) -> SqlType:
    """Return the SQL type of an Arrow type."""
    if pa.types.is_decimal(kind):
        return _DECIMAL  # the precision of an Arrow column is often that of its first values
    if pa.types.is_timestamp(kind):
        fine = mysql.DATETIME(fsp=6)
        return sa.DateTime(timezone=kind.tz is not None).with_variant(fine, "mysql", "mariadb")
    if pa.types.is_nested(kind):
        return sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
    matching = (sql for matches, sql in _SQL_TYPES if matches(kind))
    return next(matching, sa.Text)()


_SQL_TYPES = (
    (pa.types.is_boolean, sa.Boolean),
    (lambda kind: pa.types.is_integer(kind) and kind.bit_width < 32, sa.SmallInteger),
    (pa.types.is_int32, sa.Integer),
    (pa.types.is_integer, sa.BigInteger),
    (pa.types.is_float64, sa.Double),
    (pa.types.is_floating, sa.REAL),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), sa.LargeBinary),
    (pa.types.is_date, sa.Date),
    (pa.types.is_time, sa.Time),
)

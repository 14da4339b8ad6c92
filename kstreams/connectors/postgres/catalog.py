"""`Catalog`: the tables of a database, as a source has to know them: columns, key and replica identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kstreams.connectors.postgres.text_columns import PostgresType
from kstreams.errors import ConnectorError
from kstreams.kernel.advice import nearest_name

if TYPE_CHECKING:
    from kstreams.connectors.postgres.server import Connection

_TABLE = """
SELECT c.oid::int8, n.nspname, c.relname, c.relkind = 'p', c.relreplident,
       coalesce((r.indkey::int2[])[0:r.indnkeyatts - 1], (p.indkey::int2[])[0:p.indnkeyatts - 1])
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_index r ON r.indrelid = c.oid AND r.indisreplident AND c.relreplident = 'i'
LEFT JOIN pg_index p ON p.indrelid = c.oid AND p.indisprimary
WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p')
"""
_COLUMNS = """
SELECT attnum, attname, atttypid::int8, attgenerated <> '', attstorage <> 'p'
FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_TYPE = """
SELECT typname, typbasetype::int8, CASE WHEN typcategory = 'A' THEN typelem::int8 ELSE 0 END
FROM pg_type WHERE oid = %s
"""
_NAMES = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relname !~ '^pg_'"

FULL_IDENTITY = "f"
_NO_IDENTITY = "n"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
    type_id : int
        The object identifier of the type.
    is_generated : bool
        True if the server computes the value. Such a column is not replicated.
    may_be_toasted : bool
        True if a long value is stored outside the row. An update that does not change it does not contain it.
    """

    name: str
    type_id: int
    is_generated: bool
    may_be_toasted: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is read.

    Parameters
    ----------
    identifier : int
        The object identifier, which a renamed table keeps.
    schema, name : str
    is_partitioned : bool
    identity : str
        `relreplident`: `d` for the primary key, `i` for an index, `f` for the full row, `n` for nothing.
    columns : tuple of Column
    key : tuple of str
        The columns of the key: of the index of the replica identity, else of the primary key.
    """

    identifier: int
    schema: str
    name: str
    is_partitioned: bool
    identity: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def sql(self) -> str:
        """The quoted name."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def sql_without_descendants(self) -> str:
        """The table without tables that inherit from it. The rows of a partitioned table are in its partitions."""
        return self.sql if self.is_partitioned else f"ONLY {self.sql}"

    def column(self, name: str) -> Column:
        """Return a column.

        Raises
        ------
        ConnectorError
            If there is none, or it is not replicated.
        """
        columns = {column.name: column for column in self.columns}
        if name not in columns:
            nearest = nearest_name(name, columns)
            hint = f"; did you mean {nearest!r}?" if nearest else ""
            raise ConnectorError(
                f"The table {self.full_name} has no column {name!r}{hint} It has: {', '.join(columns)}. Name the "
                "fields of the type like the columns"
            )
        if columns[name].is_generated:
            raise ConnectorError(
                f"The column {name!r} of {self.full_name} is generated, and PostgreSQL does not replicate generated "
                "columns: remove the field from the type, and compute it in the topology"
            )
        return columns[name]


def quoted(name: str) -> str:
    """Return a name as an identifier in SQL.

    Examples
    --------
    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a literal of any type in SQL.

    Examples
    --------
    >>> literal("it's"), literal("a\\\\b")
    ("'it''s'", " E'a\\\\\\\\b'")
    """
    doubled = text.replace("'", "''")
    return f"'{doubled}'" if "\\" not in text else " E'" + doubled.replace("\\", "\\\\") + "'"


class Catalog:
    """Reads the catalogue of a database.

    Parameters
    ----------
    connection : psycopg connection
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._types: dict[int, PostgresType] = {}

    def table(self, name: str) -> Table:
        """Return the table with a name, such as `orders` or `shop.orders`.

        Raises
        ------
        ConnectorError
            If there is none, or it has no key.
        """
        row = self._connection.execute(_TABLE, [name]).fetchone()
        if row is None:
            raise ConnectorError(f"There is no table {name!r} in the database{self._hint(name)}")
        identifier, schema, relation, is_partitioned, identity, key = row
        rows = self._connection.execute(_COLUMNS, [identifier]).fetchall()
        names = {number: column for number, column, *_ in rows}
        table = Table(
            identifier=identifier,
            schema=schema,
            name=relation,
            is_partitioned=is_partitioned,
            identity=identity,
            columns=tuple(Column(column, kind, generated, toasted) for _, column, kind, generated, toasted in rows),
            key=tuple(names[number] for number in key or ()),
        )
        return _with_checked_key(table)

    def column_type(self, identifier: int) -> PostgresType:
        """Return a type by its object identifier."""
        if identifier not in self._types:
            row = self._connection.execute(_TYPE, [identifier]).fetchone()
            name, base, element = row if row is not None else ("unknown", 0, 0)
            if base:
                self._types[identifier] = self.column_type(base)
            else:
                self._types[identifier] = PostgresType(name, self.column_type(element) if element else None)
        return self._types[identifier]

    def scalar(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Return the one value of a query, or None if it has no row."""
        row = self._connection.execute(query, parameters).fetchone()
        return None if row is None else row[0]

    def _hint(self, name: str) -> str:
        names = [row[0] for row in self._connection.execute(_NAMES)]
        nearest = nearest_name(name.rpartition(".")[2], names)
        return f". Did you mean {nearest!r}?" if nearest else ". Write schema.name for a table outside the search path"


def _with_checked_key(table: Table) -> Table:
    name = table.full_name
    if table.identity == _NO_IDENTITY:
        raise ConnectorError(
            f"The table {name} has REPLICA IDENTITY NOTHING, so PostgreSQL would refuse its updates and deletes once "
            f"it is published: ALTER TABLE {table.sql} REPLICA IDENTITY DEFAULT"
        )
    if not table.key:
        raise ConnectorError(
            f"The table {name} has no primary key, which identifies its rows: add one, or ALTER TABLE {table.sql} "
            "REPLICA IDENTITY USING INDEX with a unique index of columns that are NOT NULL"
        )
    return replace(table, key=tuple(table.key))

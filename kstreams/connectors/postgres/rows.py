"""`TableRows`: how the rows of a table, as columns of text, become keys and values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from kstreams.connectors.postgres.text_columns import Decode, PostgresType, text_decoder
from kstreams.errors import ConnectorError
from kstreams.expressions import fields_of
from kstreams.expressions.types import takes_null


class Texts(Protocol):
    """Rows as columns of text."""

    def __len__(self) -> int: ...

    def text(self, column: str) -> pa.Array:
        """Return a column. The names are those of the table."""
        ...


class TextTable:
    """Rows as columns of text that exist already."""

    def __init__(self, columns: Mapping[str, pa.Array], count: int) -> None:
        self._columns = columns
        self._count = count

    def __len__(self) -> int:
        return self._count

    def text(self, column: str) -> pa.Array:
        return self._columns[column]


class TableRows:
    """The conversion of the rows of one table.

    Parameters
    ----------
    table : str
        The name, for errors.
    types : mapping of str to PostgresType
        The columns that the table has now.
    key : sequence of str
        The columns of the key.
    key_type, row_type : type
        The declared types. `dict` takes all columns.

    Raises
    ------
    ConnectorError
        If a declared field has no column, or the column has another type.
    """

    def __init__(
        self, table: str, types: Mapping[str, PostgresType], key: Sequence[str], key_type: object, row_type: object
    ) -> None:
        self._table = table
        self._types = types
        self.key = tuple(key)
        self._is_plain_key = key_type is not dict and fields_of(key_type) is None
        self._key_fields = self._declared_key(key_type)
        self._row_type = row_type
        self._row_fields = _fields(row_type) or {name: kind.python_type for name, kind in types.items()}
        self._key_decoders = {name: self._decoder(name, kind) for name, kind in self._key_fields.items()}
        self._row_decoders = {name: self._decoder(name, kind) for name, kind in self._row_fields.items()}

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [name for name in self._types if name in self._row_fields or name in self.key]

    @property
    def row_columns(self) -> list[str]:
        """The columns of the values."""
        return [name for name in self._types if name in self._row_fields]

    def keys(self, rows: Texts) -> pa.Array:
        """Return the keys of rows."""
        columns = [self._decoded(name, decode, rows) for name, decode in self._key_decoders.items()]
        return columns[0] if self._is_plain_key else pa.StructArray.from_arrays(columns, list(self._key_fields))

    def values(self, rows: Texts) -> pa.Array:
        """Return the values of rows."""
        columns = [self._value_column(name, decode, rows) for name, decode in self._row_decoders.items()]
        return pa.StructArray.from_arrays(columns, list(self._row_fields))

    def key_texts(self, rows: Texts) -> list[pa.Array]:
        """Return the columns of the key as text."""
        return [rows.text(name) for name in self.key]

    def _value_column(self, name: str, decode: Decode, rows: Texts) -> pa.Array:
        if name not in self._types:
            return decode(pa.nulls(len(rows), pa.string()))
        column = self._decoded(name, decode, rows)
        if column.null_count and self._row_type is not dict and not takes_null(self._row_type, name):
            row = column.is_null().index(True).as_py()
            key = [texts[row].as_py() for texts in self.key_texts(rows)]
            raise ConnectorError(
                f"The column {name!r} of {self._table} is null in the row with the key {', '.join(map(str, key))}: "
                f"declare the field so that it may be None"
            )
        return column

    def _decoded(self, name: str, decode: Decode, rows: Texts) -> pa.Array:
        texts = rows.text(name)
        try:
            return decode(texts)
        except (pa.ArrowException, ValueError) as error:
            raise ConnectorError(
                f"The column {name!r} of {self._table} holds a value that does not fit {self._kind(name)}: {error}. "
                "Declare the field as str to read the text of PostgreSQL"
            ) from error

    def _kind(self, name: str) -> object:
        kind = self._row_fields.get(name, self._key_fields.get(name))
        return getattr(kind, "__name__", kind)

    def _decoder(self, name: str, kind: object) -> Decode:
        column_type = self._types.get(name)
        if column_type is None:
            self._check_absent(name)
            return text_decoder(kind, PostgresType("text"))
        try:
            return text_decoder(kind, column_type)
        except ConnectorError as error:
            raise ConnectorError(f"The field {name!r} of the rows of {self._table}: {error}") from error

    def _check_absent(self, name: str) -> None:
        if name in self.key or not takes_null(self._row_type, name):
            raise ConnectorError(
                f"The table {self._table} no longer has the column {name!r}, which was dropped or renamed. Rename the "
                f"field, or declare it so that it may be None. The columns are now: {', '.join(self._types)}"
            )

    def _declared_key(self, key_type: object) -> dict[str, object]:
        if self._is_plain_key:
            if len(self.key) > 1:
                raise ConnectorError(
                    f"The key of {self._table} has the columns {', '.join(self.key)}: declare key_type= as a class "
                    "with these fields, or as dict"
                )
            return {self.key[0]: key_type}
        declared = _fields(key_type) or {name: self._types[name].python_type for name in self.key}
        if set(declared) != set(self.key):
            raise ConnectorError(
                f"The key of {self._table} has the columns {', '.join(self.key)}, but the class of keys has the fields "
                f"{', '.join(declared)}"
            )
        return declared


def _fields(kind: object) -> dict[str, object]:
    return dict(fields_of(kind) or {})


def keys_as_json(key: Sequence[str], columns: Sequence[pa.Array]) -> str:
    """Return keys as a JSON array of objects, from which PostgreSQL makes rows of a table.

    Examples
    --------
    >>> keys_as_json(["id"], [pa.array(["1", "2"])])
    '[{"id": "1"}, {"id": "2"}]'
    """
    rows: Any = zip(*(column.to_pylist() for column in columns), strict=True)
    return json.dumps([dict(zip(key, row, strict=True)) for row in rows])

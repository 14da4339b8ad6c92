"""`fit`: rows with the columns of a table, and the rows that the table cannot take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import Offsets, RefusedRow
from kstreams.connectors.columns import MAX_DIGITS
from kstreams.errors import ConnectorError
from kstreams.serdes.base import failing_rows

Flags: TypeAlias = "np.typing.NDArray[np.bool_]"

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
"""Tables of lakehouses have signed numbers only."""


class FittedRows(NamedTuple):
    """Rows of a table with their offsets, and the refused ones."""

    rows: pa.Table
    offsets: Offsets
    refused: list[RefusedRow]


def table_schema(rows: pa.Schema) -> pa.Schema:
    """Return the schema of a new table for rows. Columns of which all values are null are left out.

    Decimals have as many digits as there can be, since later values may be greater than those of the first rows.

    Examples
    --------
    >>> table_schema(pa.schema([("n", pa.uint8()), ("nothing", pa.null()), ("price", pa.decimal128(5, 2))]))
    n: int16
    price: decimal128(38, 2)
    """
    fields = [field for field in rows if not pa.types.is_null(field.type)]
    return pa.schema([pa.field(field.name, _table_type(field.type)) for field in fields])


def _table_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal128(kind):
        return pa.decimal128(MAX_DIGITS, kind.scale)
    return _SIGNED.get(kind, kind)


def new_columns(rows: pa.Schema, table: pa.Schema) -> pa.Schema:
    """Return the columns of rows that a table does not have."""
    return pa.schema([field for field in table_schema(rows) if field.name not in table.names])


def fit(rows: pa.Table, offsets: Offsets, table: pa.Schema, *, may_lack_values: Flags | None = None) -> FittedRows:
    """Return the rows with exactly the columns of a table. Columns that the rows do not have are null.

    Parameters
    ----------
    rows : pyarrow.Table
    offsets : numpy int64 array
    table : pyarrow.Schema
    may_lack_values : numpy bool array, optional
        The rows that may be null in columns that admit no null, since they delete.

    Raises
    ------
    ConnectorError
        If a column has a type that never fits that of the table.

    Examples
    --------
    >>> fitted = fit(pa.table({"n": [1, 300]}), np.array([7, 8]), pa.schema([("n", pa.int8()), ("s", pa.string())]))
    >>> fitted.rows.to_pylist(), fitted.refused[0].offset
    ([{'n': 1, 's': None}], 8)
    """
    rows = rows.combine_chunks()
    errors: dict[int, Exception] = {}
    for field in table:
        if field.name in rows.column_names:
            column = _one_chunk(rows.column(field.name))
            errors |= _cast_errors(column, field)
            if not field.nullable:
                errors |= _null_errors(column, field, may_lack_values)
        elif not field.nullable:
            raise ConnectorError(f"The table demands the column {field.name!r}, which the rows do not have.")
    refused = [RefusedRow(int(offsets[index]), error) for index, error in sorted(errors.items())]
    if errors:
        remaining = np.setdiff1d(np.arange(len(rows)), list(errors))
        rows = rows.take(remaining)
        offsets = offsets[remaining]
    columns = [_column(rows, field) for field in table]
    return FittedRows(pa.Table.from_arrays(columns, names=table.names), offsets, refused)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _cast_errors(column: pa.Array, field: pa.Field) -> dict[int, Exception]:
    """Return why rows cannot be in a column, by their positions."""
    try:
        column.slice(0, 0).cast(field.type)
    except pa.ArrowException as error:
        raise ConnectorError(
            f"The table's column {field.name!r} is of type {field.type}, the rows have {column.type}: "
            "select or cast the fields before the sink."
        ) from error
    errors: dict[int, Exception] = {}
    try:
        column.cast(field.type)
    except pa.ArrowException:
        errors.update(failing_rows(lambda part: part.cast(field.type), column))
    return errors


def _null_errors(column: pa.Array, field: pa.Field, may_lack_values: Flags | None) -> dict[int, Exception]:
    is_wrong = column.is_null().to_numpy(zero_copy_only=False)
    if may_lack_values is not None:
        is_wrong = is_wrong & ~may_lack_values
    error = ValueError(f"the column {field.name!r} of the table admits no null")
    return dict.fromkeys(np.flatnonzero(is_wrong).tolist(), error)


def _column(rows: pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if field.name not in rows.column_names:
        return pa.nulls(len(rows), field.type)
    return rows.column(field.name).cast(field.type)


def last_of_each_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last row of each key, in the order of the rows.

    Examples
    --------
    >>> last_of_each_key(pa.table({"k": [1, 2, 1], "v": ["a", "b", "c"]}), ["k"]).to_pylist()
    [{'k': 2, 'v': 'b'}, {'k': 1, 'v': 'c'}]
    """
    position = "position of the row"
    numbered = rows.select(list(key)).append_column(position, pa.array(np.arange(len(rows))))
    last = numbered.group_by(list(key)).aggregate([(position, "max")]).column(f"{position}_max")
    return rows.take(last.sort())

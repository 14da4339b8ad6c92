"""Conversion of the columns of a database to the Arrow types of a class."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.kernel.decoders import decode_json

_TIME_MS = pa.timestamp("ms", "UTC")


def typed_column(column: pa.ChunkedArray, kind: pa.DataType | None) -> pa.Array:
    """Return a column in a type; unchanged if the type is None.

    A text becomes a list or struct as JSON. A time without a zone is in UTC.

    Raises
    ------
    pyarrow.ArrowException, msgspec.DecodeError
        If a value has no counterpart in the type.

    Examples
    --------
    >>> typed_column(pa.chunked_array([['{"x": 1}', None]]), pa.struct([("x", pa.int64())])).to_pylist()
    [{'x': 1}, None]
    >>> print(typed_column(pa.chunked_array([["2024-05-06 07:08:09"]]), pa.timestamp("us", "UTC"))[0])
    2024-05-06 07:08:09+00:00
    """
    array = column.combine_chunks()
    if kind is None or array.type == kind:
        return array
    if pa.types.is_nested(kind) and pa.types.is_string(array.type):
        values = [None if text is None else decode_json(text.encode()) for text in array.to_pylist()]
        return pa.array(values, kind)
    if pa.types.is_timestamp(kind):
        return _times(array, kind)
    if pa.types.is_string(kind) and pa.types.is_nested(array.type):
        return pa.array([None if value is None else msgspec.json.encode(value).decode() for value in array.to_pylist()])
    return array.cast(kind)


def _times(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_string(array.type):
        return array.cast(kind, safe=False)  # digits below the unit are cut off
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:  # a text without a zone
        return pc.assume_timezone(array.cast(pa.timestamp(kind.unit)), kind.tz)


def event_times(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of times as milliseconds since the epoch. Numbers are seconds, as in SQLite."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return pc.multiply(column, 1000).combine_chunks().cast(pa.int64(), safe=False)
    return typed_column(column, _TIME_MS).cast(pa.int64())

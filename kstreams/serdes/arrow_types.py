"""Conversion of Python types to Arrow types, and of serialized columns to the typed columns of Delta tables."""

from __future__ import annotations

import types
import uuid
from collections.abc import Callable
from datetime import date, datetime
from typing import Union, get_args, get_origin

import msgspec
import pyarrow as pa

from kstreams.expressions import fields_of
from kstreams.record import Windowed
from kstreams.serdes import Serde, WindowedSerde

_SCALARS = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    datetime: pa.timestamp("us", "UTC"),
    date: pa.date32(),
    uuid.UUID: pa.string(),
}
_WINDOW = [pa.field("window_start", pa.timestamp("us", "UTC")), pa.field("window_end", pa.timestamp("us", "UTC"))]


def arrow_type(kind: object) -> pa.DataType | None:
    """Return the Arrow type for values of a Python type; None if there is none.

    Examples
    --------
    >>> print(arrow_type(list[int | None]))
    list<item: int64>
    >>> arrow_type(int | str) is None
    True
    """
    if get_origin(kind) in (Union, types.UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        return arrow_type(members[0]) if len(members) == 1 else None
    if isinstance(kind, type) and kind in _SCALARS:
        return _SCALARS[kind]
    convert = _GENERIC.get(get_origin(kind))
    if convert is not None:
        inner = [arrow_type(argument) for argument in get_args(kind)]
        return None if None in inner else convert(*inner)
    return _struct(fields_of(kind))


_GENERIC: dict[object, Callable[..., pa.DataType]] = {list: pa.list_, dict: pa.map_}


def _struct(fields: dict[str, object] | None) -> pa.DataType | None:
    types = {name: arrow_type(kind) for name, kind in (fields or {}).items()}
    return pa.struct(list(types.items())) if types and None not in types.values() else None


def typed_column(serde: Serde[object] | None, column: pa.Array) -> pa.Array:
    """Decode a serialized column; return it unchanged if its type has no Arrow type."""
    if isinstance(serde, WindowedSerde):
        return _windowed(serde, column)
    if serde is not None and serde.arrow_type is not None:
        return serde.decode_column(column)
    kind = None if serde is None else arrow_type(serde.type)
    if serde is None or kind is None:
        return column
    return pa.array([_builtin(value) for value in serde.decode_rows(column)], kind)


def windowed_type(serde: WindowedSerde) -> pa.DataType | None:
    """Return the type of a column of windowed keys: `key`, `window_start`, `window_end`. None if the key has none."""
    kind = arrow_type(serde.inner.type)
    return None if kind is None else pa.struct([pa.field("key", kind), *_WINDOW])


def _windowed(serde: WindowedSerde, column: pa.Array) -> pa.Array:
    kind = windowed_type(serde)
    if kind is None:
        return column
    rows = [None if key is None else _windowed_row(key) for key in serde.decode_rows(column)]
    return pa.array(rows, kind)


def _windowed_row(key: Windowed[object]) -> dict[str, object]:
    start, end = (bound * 1000 for bound in key.window)
    return {"key": _builtin(key.key), "window_start": start, "window_end": end}


def _builtin(value: object) -> object:
    """Convert a value to builtin types, which Arrow reads."""
    return msgspec.to_builtins(value, builtin_types=(bytes, datetime, date))

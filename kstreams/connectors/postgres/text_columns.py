"""Decoders of PostgreSQL's text format: from columns of text to Arrow columns of declared Python types."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Optional, TypeAlias, get_args, get_origin

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import ConnectorError
from kstreams.kernel.decoders import json_decoder
from kstreams.serdes.arrow_types import arrow_type
from kstreams.serdes.base import without_none

Decode: TypeAlias = Callable[[pa.Array], pa.Array]
"""Converts a column of text to a column of a declared type. Raises ArrowException or ValueError."""


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A type of PostgreSQL. A domain is the type that it restricts.

    Parameters
    ----------
    name : str
        The name in `pg_type`, such as `timestamptz`.
    element : PostgresType or None
        The type of the elements of an array.
    """

    name: str
    element: PostgresType | None = None

    @property
    def python_type(self) -> object:
        """The Python type for a column that is not declared. Types without one are text."""
        if self.element is not None:
            return list[self.element.python_type | None]  # type: ignore[name-defined]
        return _PYTHON_TYPES.get(self.name, str)


_PYTHON_TYPES: dict[str, object] = {
    "bool": bool,
    "int2": int,
    "int4": int,
    "int8": int,
    "oid": int,
    "float4": float,
    "float8": float,
    "timestamp": datetime,
    "timestamptz": datetime,
    "date": date,
    "bytea": bytes,
}


def text_decoder(declared: object, column_type: PostgresType) -> Decode:
    """Return the decoder of a column to a declared type.

    Numbers of the type `numeric` stay text, which holds all digits, NaN and infinity: `Decimal` is read from it. So do
    UUIDs, enumerations, times of day and intervals. Infinite times and dates become the last or first of Python.

    Parameters
    ----------
    declared : type
        The Python type of the field.
    column_type : PostgresType

    Raises
    ------
    ConnectorError
        If columns of PostgreSQL's type cannot have the declared type.

    Examples
    --------
    >>> decode = text_decoder(list[int | None], PostgresType("_int4", PostgresType("int4")))
    >>> decode(pa.array(["{1,NULL,3}", None])).to_pylist()
    [[1, None, 3], None]
    """
    kind = without_none(_without_annotation(declared))
    if column_type.element is not None and get_origin(kind) is list:
        return _array_decoder(kind, column_type.element)
    if column_type.name in ("json", "jsonb") and kind is not str:
        return _json_decoder(kind)
    if kind is datetime:
        return _timestamps_with_zone if column_type.name == "timestamptz" else _timestamps
    if kind in (dict, Any) or get_origin(kind) in (list, dict):
        raise ConnectorError(f"a column of the type {column_type.name} cannot be read as {declared}: declare it as str")
    return _DECODERS.get(kind, _unchanged)


def _without_annotation(kind: object) -> object:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _unchanged(texts: pa.Array) -> pa.Array:
    return texts


def _integers(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.int64())


def _floats(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.float64())


def _booleans(texts: pa.Array) -> pa.Array:
    return pc.equal(texts, "t")


def _timestamps(texts: pa.Array) -> pa.Array:
    return _finite(texts, "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00").cast(pa.timestamp("us"))


def _timestamps_with_zone(texts: pa.Array) -> pa.Array:
    texts = _finite(texts, "9999-12-31 23:59:59.999999+00", "0001-01-01 00:00:00+00")
    return texts.cast(pa.timestamp("us", "UTC"))


def _dates(texts: pa.Array) -> pa.Array:
    return _finite(texts, "9999-12-31", "0001-01-01").cast(pa.date32())


def _finite(texts: pa.Array, last: str, first: str) -> pa.Array:
    """Replace infinity by the last value of Python's type, and minus infinity by the first."""
    is_infinite = pc.match_substring(texts, "infinity")
    if not pc.any(is_infinite).as_py():
        return texts
    bounds = pc.if_else(pc.starts_with(texts, "-"), first, last)
    return pc.if_else(is_infinite, bounds, texts)


_HEX_VALUES = np.zeros(256, np.uint8)
for _value, _digits in enumerate(zip("0123456789abcdef", "0123456789ABCDEF", strict=True)):
    _HEX_VALUES[[ord(digit) for digit in _digits]] = _value


def _octets(texts: pa.Array) -> pa.Array:
    """Decode `\\x0a0b`."""
    digits = pc.utf8_slice_codeunits(texts, 2).cast(pa.large_binary())
    digits = pc.fill_null(digits, b"")
    _, offsets, data = digits.buffers()
    bounds = np.frombuffer(offsets, np.int64)[digits.offset : digits.offset + len(digits) + 1]
    nibbles = _HEX_VALUES[np.frombuffer(data if data is not None else b"", np.uint8)[bounds[0] : bounds[-1]]]
    values = (nibbles[0::2] << 4) | nibbles[1::2]
    ends = ((bounds - bounds[0]) // 2).astype(np.int64)
    column = pa.Array.from_buffers(
        pa.large_binary(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(values)]
    ).cast(pa.binary())
    return pc.if_else(texts.is_valid(), column, pa.scalar(None, pa.binary())) if texts.null_count else column


_DECODERS: dict[object, Decode] = {
    int: _integers,
    float: _floats,
    bool: _booleans,
    bytes: _octets,
    date: _dates,
}


def _json_decoder(kind: object) -> Decode:
    column_type = arrow_type(kind)
    if column_type is None:
        raise ConnectorError(f"a column of JSON cannot be read as {kind}, which has no columns: declare it as str")
    decoder: Any = json_decoder(Optional[kind])  # noqa: UP045 (a type that is known at run time)

    def decode(texts: pa.Array) -> pa.Array:
        rows = [None if text is None else decoder.decode(text) for text in texts.to_pylist()]
        builtins = msgspec.to_builtins(rows, builtin_types=(bytes, datetime, date))
        return pa.array(builtins, column_type)

    return decode


def _array_decoder(kind: object, element: PostgresType) -> Decode:
    (item,) = get_args(kind)
    is_nested = get_origin(without_none(item)) is list
    decode_items = _array_decoder(without_none(item), element) if is_nested else text_decoder(item, element)

    def decode(texts: pa.Array) -> pa.Array:
        elements = [None if text is None else array_elements(text) for text in texts.to_pylist()]
        items = [item for items in elements if items is not None for item in items]
        lengths = np.fromiter((0 if items is None else len(items) for items in elements), np.int32, len(elements))
        offsets = np.zeros(len(elements) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        mask = pa.array([items is None for items in elements])
        return pa.ListArray.from_arrays(pa.array(offsets), decode_items(pa.array(items, pa.string())), mask=mask)

    return decode


_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"\s][^,{}"]*)|([{}])', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def array_elements(text: str) -> list[str | None]:
    """Return the elements of an array in PostgreSQL's text format. Inner arrays stay text.

    Examples
    --------
    >>> array_elements('{1,NULL,"a, \\\\"b\\\\"","NULL"}')
    ['1', None, 'a, "b"', 'NULL']
    >>> array_elements("[0:1][1:2]={{1,2},{3,4}}")
    ['{1,2}', '{3,4}']
    """
    body = text[text.index("{") + 1 : -1]
    elements: list[str | None] = []
    depth = 0
    start = 0
    for match in _ELEMENT.finditer(body):
        quoted, plain, brace = match.groups()
        if brace == "{":
            start = start if depth else match.start()
            depth += 1
        elif brace == "}":
            depth -= 1
            if not depth:
                elements.append(body[start : match.end()])
        elif not depth:
            elements.append(_unescaped(quoted) if plain is None else None if plain == "NULL" else plain)
    return elements


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)

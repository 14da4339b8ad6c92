"""JSON values as Arrow columns: all values of a batch in one call, and only the fields that are needed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import json_decoder
from kstreams.serdes.class_fields import field_declarations, field_types

_NEWLINE = ord("\n")
_MAX_BYTES = 2**31 - 1  # an Arrow binary array has 32-bit offsets


def decode_lines(decoder: Any, column: pa.Array) -> list[object]:
    """Decode a binary array without nulls in one call.

    Raises
    ------
    SerdeError
        If a value does not decode, or may be more or less than one JSON value. The caller then decodes one by one.
    """
    # Each line must hold one value. The number of lines alone does not prove this: an empty value and a value with a
    # newline have two lines together, and so have two values on one line and one value on two lines. Braces at both
    # ends of each value exclude both cases, since no JSON value continues with an opening brace after a closing one.
    lines = b"\n".join(_in_braces(column))
    if lines.count(b"\n") > max(len(column) - 1, 0):
        raise SerdeError("a JSON value contains a newline: the values are decoded one by one")
    try:
        rows: list[Any] = decoder.decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SerdeError(f"a JSON value does not decode: {error}") from error
    if len(rows) != len(column):
        raise SerdeError(f"{len(column)} JSON values decode to {len(rows)} rows")
    return rows


def encode_lines(encoder: Any, values: list[Any]) -> pa.Array | None:
    """Encode many values in one call. Return None if the values must be encoded one by one."""
    if any(map(is_, values, repeat(None))):
        return None
    data = np.frombuffer(encoder.encode_lines(values), np.uint8)
    is_end = data == _NEWLINE
    ends = np.flatnonzero(is_end)
    if len(ends) != len(values) or len(data) > _MAX_BYTES:
        return None
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(values))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data[~is_end])])


def _in_braces(column: pa.Array) -> list[bytes]:
    """Return the values without trailing space. Raises SerdeError unless each begins and ends with a brace."""
    values: list[bytes] = column.to_pylist()
    if not values:
        return values
    _, ends, data = column.buffers()
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    octets = np.frombuffer(data if data is not None else b"", np.uint8)
    if (offsets[1:] == offsets[:-1]).any() or not (octets[offsets[:-1]] == ord("{")).all():
        raise SerdeError("a JSON value does not begin with a brace: the values are decoded one by one")
    if not (octets[offsets[1:] - 1] == ord("}")).all():
        values = [value.rstrip(b" \t\r") for value in values]
        if not all(value.endswith(b"}") for value in values):
            raise SerdeError("a JSON value does not end with a brace: the values are decoded one by one")
    return values


class JsonColumns:
    """Reader of some fields of JSON objects as Arrow columns. All other fields are skipped without a check.

    Parameters
    ----------
    kind : type
        The type of the values: a msgspec Struct, dataclass, TypedDict or `dict[str, T]`.
    fields : sequence of str
        The fields to read. The type of each is int, float, str or bool, or one of these or None.

    Raises
    ------
    SerdeError
        If the type or one of the fields has no columnar form. The message has the reason.

    Examples
    --------
    >>> raw = pa.array([b'{"a":1,"b":"x"}', None, b'{"a":2,"b":"y"}'], pa.binary())
    >>> JsonColumns(dict[str, int], ["a"]).decode(raw)["a"].to_pylist()
    [1, None, 2]
    """

    def __init__(self, kind: Any, fields: Sequence[str]) -> None:
        declarations = field_declarations(kind)
        self.types = {name: field.type for name, field in field_types(kind, fields).items()}
        row = msgspec.defstruct("Row", [declarations[name] for name in fields], gc=False, kw_only=True)
        self._decoder = json_decoder(row)

    def decode(self, column: pa.Array) -> dict[str, pa.Array]:
        """Return one column per field of a binary array of JSON. A null value gives null fields.

        Raises
        ------
        SerdeError
            If a value does not decode. Decoding the records one by one then finds the value.
        """
        present = column.drop_null() if column.null_count else column
        rows = decode_lines(self._decoder, present)
        columns = {name: _column(rows, name, kind) for name, kind in self.types.items()}
        if column.null_count:
            counts = pc.cumulative_sum(pc.cast(column.is_valid(), pa.int64()))
            indices = pc.if_else(column.is_valid(), pc.subtract(counts, 1), None)
            columns = {name: values.take(indices) for name, values in columns.items()}
        return columns


def _column(rows: list[Any], name: str, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(list(map(attrgetter(name), rows)), kind)
    except (pa.ArrowException, OverflowError) as error:
        raise SerdeError(f"the field {name!r} holds a value that does not fit {kind}: {error}") from error

"""Many JSON values in one call of msgspec, one a line; what lines do not say exactly is left to a call per value."""

from __future__ import annotations

from itertools import repeat
from operator import is_
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kstreams.errors import SerdeError

_NEWLINE = ord("\n")
_MOST_BYTES = 2**31 - 1


def of_lines(decoder: Any, column: pa.Array) -> list[Any]:
    """The objects of a binary array without nulls.

    Raises
    ------
    SerdeError
        When a value does not decode, or could be more than one, or part of one: which, a call per value tells.
    """
    # One value per line. One that begins with no brace could be nothing, and one that holds a newline could be two:
    # together they would pass for the right number. So would two lines that are one value, beside a line that is two;
    # but behind a closing brace no value goes on with an opening one.
    lines = b"\n".join(_in_braces(column))
    if lines.count(b"\n") > max(len(column) - 1, 0):
        raise SerdeError("a JSON value with a newline in it is read by itself")
    try:
        rows: list[Any] = decoder.decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SerdeError(f"a JSON value does not decode: {error}") from error
    if len(rows) != len(column):
        raise SerdeError(f"{len(column)} JSON values decode to {len(rows)} rows")
    return rows


def as_lines(encoder: Any, values: list[Any]) -> pa.Array | None:
    """Values as a binary array of what the encoder writes for each; None where they are to be written one by one."""
    if any(map(is_, values, repeat(None))):
        return None
    data = np.frombuffer(encoder.encode_lines(values), np.uint8)
    is_end = data == _NEWLINE
    ends = np.flatnonzero(is_end)
    if len(ends) != len(values) or len(data) > _MOST_BYTES:
        return None
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:] = ends - np.arange(len(values))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data[~is_end])])


def _in_braces(column: pa.Array) -> list[bytes]:
    """The values, none of which begins or ends otherwise; spaces behind are cut off."""
    values: list[bytes] = column.to_pylist()
    if not values:
        return values
    _, ends, data = column.buffers()
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    letters = np.frombuffer(data if data is not None else b"", np.uint8)
    if (offsets[1:] == offsets[:-1]).any() or not (letters[offsets[:-1]] == ord("{")).all():
        raise SerdeError("a JSON value that does not begin with a brace is read by itself")
    if not (letters[offsets[1:] - 1] == ord("}")).all():
        values = [value.rstrip(b" \t\r") for value in values]
        if not all(value.endswith(b"}") for value in values):
            raise SerdeError("a JSON value that does not end with a brace is read by itself")
    return values

"""Frames in headers: a GUID beside a record instead of in front of its bytes.

The header `__key_schema_id` or `__value_schema_id` holds the frame; key or value then begin without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from kstreams.batch import headers_column, rows_of_headers
from kstreams.record import Headers, last_header
from kstreams.serdes.schemas.frame import LENGTHS

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"


def header_name(*, is_key: bool) -> str:
    """The name of the header with the frame of keys, or of values."""
    return KEY_HEADER if is_key else VALUE_HEADER


def framed(data: bytes, headers: Headers, name: str) -> bytes:
    """The bytes of one record, with the frame in front that a header holds.

    Examples
    --------
    >>> framed(b"data", (("__value_schema_id", bytes(5)),), "__value_schema_id")
    b'\\x00\\x00\\x00\\x00\\x00data'
    """
    return _frame(headers, name) + data if headers else data


def with_frames(column: pa.Array, headers: pa.Array | None, name: str) -> pa.Array:
    """The bytes of records, those whose header holds a frame with that in front."""
    if headers is None or not _names(headers, name):
        return column
    frames = [_frame(row, name) for row in rows_of_headers(headers)]
    rows = zip(column.to_pylist(), frames, strict=True)
    return pa.array([data if data is None else frame + data for data, frame in rows], pa.binary())


def without_frames(
    column: pa.Array, headers: pa.Array | None, name: str, length: Callable[[bytes], int]
) -> tuple[pa.Array, pa.Array | None]:
    """The bytes without their frames, and headers that hold the frames.

    Parameters
    ----------
    column : pyarrow binary array, length n
    headers : pyarrow list<struct<name, value>> array, length n, or None
    name : str
        Of the header.
    length : callable
        Of bytes: how many of them belong into the header.
    """
    rows = column.to_pylist()
    cuts = [0 if data is None else length(data) for data in rows]
    others: list[Headers] = [()] * len(rows) if headers is None else rows_of_headers(headers)
    own: list[Headers] = [() if data is None else ((name, data[:cut]),) for data, cut in zip(rows, cuts, strict=True)]
    beside = [(*_without(row, name), *header) for row, header in zip(others, own, strict=True)]
    bare = [data if data is None else data[cut:] for data, cut in zip(rows, cuts, strict=True)]
    return pa.array(bare, pa.binary()), headers_column(beside)


def without_header(headers: pa.Array | None, name: str) -> pa.Array | None:
    """Headers without the one of an earlier record: what is written says for itself what it is."""
    if headers is None or not _names(headers, name):
        return headers
    return headers_column([_without(row, name) for row in rows_of_headers(headers)])


def _names(headers: pa.Array, name: str) -> bool:
    """Whether any row has a header of a name."""
    return name in headers.flatten().field("name").unique().to_pylist()


def _frame(headers: Headers, name: str) -> bytes:
    """The last header of a name, if it holds a frame; nothing otherwise."""
    last = last_header(headers, name)
    return last if last and len(last) >= LENGTHS.get(last[0], len(last) + 1) else b""


def _without(headers: Headers, name: str) -> Headers:
    return tuple(header for header in headers if header[0] != name)

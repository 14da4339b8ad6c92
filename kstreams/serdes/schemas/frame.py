"""The frame: the first bytes of a key or value, which identify the writer's schema.

=========== ======================================
1 byte      0: an id follows; 1: a GUID follows
4 bytes     the id of the schema, big endian
or 16 bytes the GUID of the schema
=========== ======================================

The frame of a GUID may be in a header of the record instead: `__key_schema_id` or `__value_schema_id`.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.kernel.batch import headers_column, rows_of_headers
from kstreams.record import Headers, last_header
from kstreams.schemas import RegisteredSchema, SchemaRegistry
from kstreams.serdes.base import decode_error

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"


def header_name(*, is_key: bool) -> str:
    """Return the name of the header that holds the frame of keys or of values."""
    return KEY_HEADER if is_key else VALUE_HEADER


def framed(data: bytes, headers: Headers, name: str) -> bytes:
    """Return the bytes of one record, preceded by the frame if a header holds it.

    Examples
    --------
    >>> framed(b"data", (("__value_schema_id", bytes(5)),), "__value_schema_id")
    b'\\x00\\x00\\x00\\x00\\x00data'
    """
    return _frame_in_headers(headers, name) + data if headers else data


def with_frames(column: pa.Array, headers: pa.Array | None, name: str) -> pa.Array:
    """Return the bytes of many records, each preceded by the frame if a header holds it."""
    if headers is None or not _has_header(headers, name):
        return column
    frames = [_frame_in_headers(row, name) for row in rows_of_headers(headers)]
    rows = zip(column.to_pylist(), frames, strict=True)
    return pa.array([data if data is None else frame + data for data, frame in rows], pa.binary())


def without_frames(
    column: pa.Array, headers: pa.Array | None, name: str, length: Callable[[bytes], int]
) -> tuple[pa.Array, pa.Array | None]:
    """Move the frames of records into their headers.

    Parameters
    ----------
    column : pyarrow binary array, length n
    headers : pyarrow list<struct<name, value>> array, length n, or None
    name : str
        Name of the header.
    length : callable
        `bytes -> int`: the number of first bytes that belong in the header.
    """
    rows: list[bytes | None] = column.to_pylist()
    rows_of_record_headers: list[Headers] = [()] * len(rows) if headers is None else rows_of_headers(headers)
    new_rows: list[bytes | None] = []
    new_headers: list[Headers] = []
    for data, record_headers in zip(rows, rows_of_record_headers, strict=True):
        other_headers = _without_name(record_headers, name)
        if data is None:
            new_rows.append(None)
            new_headers.append(other_headers)
        else:
            frame_length = length(data)
            new_rows.append(data[frame_length:])
            new_headers.append((*other_headers, (name, data[:frame_length])))
    return pa.array(new_rows, pa.binary()), headers_column(new_headers)


def without_header(headers: pa.Array | None, name: str) -> pa.Array | None:
    """Remove the frame of an input record from the headers, since the output record has its own frame."""
    if headers is None or not _has_header(headers, name):
        return headers
    return headers_column([_without_name(row, name) for row in rows_of_headers(headers)])


def _has_header(headers: pa.Array, name: str) -> bool:
    """True if any row has a header with this name."""
    return name in headers.flatten().field("name").unique().to_pylist()


def _frame_in_headers(headers: Headers, name: str) -> bytes:
    """Return the value of the last header with this name if it is a frame, otherwise no bytes."""
    value = last_header(headers, name)
    return value if value and len(value) >= LENGTHS.get(value[0], len(value) + 1) else b""


def _without_name(headers: Headers, name: str) -> Headers:
    return tuple(header for header in headers if header[0] != name)


_ID = 0
_GUID = 1
_FRAME_OF_ID = struct.Struct(">BI")
LENGTHS: Final = {_ID: 5, _GUID: 17}
"""The length of a frame in bytes, by the first byte of the frame."""


def frame_of_id(number: int) -> bytes:
    """Return the frame of an id.

    Examples
    --------
    >>> frame_of_id(258)
    b'\\x00\\x00\\x00\\x01\\x02'
    """
    return _FRAME_OF_ID.pack(_ID, number)


def frame_of_guid(guid: str) -> bytes:
    """Return the frame of a GUID.

    Examples
    --------
    >>> frame_of_guid("00000000-0000-0000-0000-000000000007")[-3:]
    b'\\x00\\x00\\x07'
    """
    return bytes((_GUID,)) + uuid.UUID(guid).bytes


def frame_of(data: bytes) -> bytes:
    """Return the frame at the start of some bytes.

    Raises
    ------
    SerdeError
        If the bytes do not begin with a frame: they were not written with a schema registry.
    """
    length = LENGTHS.get(data[0]) if data else None
    if length is None or len(data) < length:
        raise decode_error(
            "a value of a schema registry", data, "it begins neither with 0 and an id nor with 1 and a GUID"
        )
    return data[:length]


def schema_of_frame(frame: bytes, registry: SchemaRegistry) -> RegisteredSchema:
    """Return the schema of a frame. Raises SchemaNotFoundError if the registry does not have it."""
    if frame[0] == _GUID:
        return registry.schema_of_guid(str(uuid.UUID(bytes=frame[1:])))
    return registry.schema(_FRAME_OF_ID.unpack(frame)[1])


def schema_in_words(frame: bytes) -> str:
    """Describe the schema of a frame, for error messages.

    Examples
    --------
    >>> schema_in_words(frame_of_id(7))
    'schema id 7'
    """
    if frame[0] == _GUID:
        return f"schema {uuid.UUID(bytes=frame[1:])}"
    return f"schema id {_FRAME_OF_ID.unpack(frame)[1]}"


def common_frame(column: pa.Array) -> bytes | None:
    """Return the frame of an id that all values of a column begin with. None if a value is null or has another frame.

    Examples
    --------
    >>> common_frame(pa.array([frame_of_id(7) + b"a", frame_of_id(7) + b"b"], pa.binary())) == frame_of_id(7)
    True
    """
    first = column[0].as_py() if len(column) and not column.null_count else b""
    frame = first[: LENGTHS[_ID]]
    is_id = len(frame) == LENGTHS[_ID] and frame[0] == _ID
    return frame if is_id and pc.all(pc.starts_with(column, pattern=frame)).as_py() else None


def first_row_of_frames(column: pa.Array) -> Iterator[tuple[bytes, int]]:
    """Yield the distinct frames of a column, each with its first row, in the order of rows.

    Examples
    --------
    >>> column = pa.array([None, frame_of_id(7) + b"a", frame_of_id(7) + b"b", frame_of_id(9)], pa.binary())
    >>> [(schema_in_words(frame), row) for frame, row in first_row_of_frames(column)]
    [('schema id 7', 1), ('schema id 9', 3)]
    >>> guids = [frame_of_guid(f"00000000-0000-0000-0000-00000000000{end}") for end in (4, 5, 4)]
    >>> [row for _, row in first_row_of_frames(pa.array([b"text", *guids], pa.binary()))]
    [1, 2]
    """
    starts = pc.binary_slice(column, 0, LENGTHS[_ID])
    rows: dict[bytes, int] = {}
    for start in pc.unique(starts).to_pylist():
        if start and len(start) == LENGTHS[_ID] and start[0] == _ID:
            rows[start] = pc.index(starts, pa.scalar(start, starts.type)).as_py()
        elif start and start[0] == _GUID:
            rows |= _first_guids(column, starts, start)
    yield from sorted(rows.items(), key=lambda item: item[1])


def _first_guids(column: pa.Array, starts: pa.Array, start: bytes) -> dict[bytes, int]:
    """Return the first row of each GUID whose frame begins with these bytes."""
    rows: dict[bytes, int] = {}
    for row in pc.indices_nonzero(pc.fill_null(pc.equal(starts, pa.scalar(start, starts.type)), False)).to_pylist():
        frame = column[row].as_py()[: LENGTHS[_GUID]]
        if len(frame) == LENGTHS[_GUID]:
            rows.setdefault(frame, row)
    return rows


def rows_by_frame(rows: Iterable[bytes | None]) -> dict[bytes, list[int]]:
    """Return the row numbers of each frame. Raises SerdeError for a row without a frame."""
    rows_of_frames: dict[bytes, list[int]] = {}
    frame = b""
    row_numbers = list[int]()
    for row_number, data in enumerate(rows):
        if data is None:
            continue
        if not frame or not data.startswith(frame):
            frame = frame_of(data)
            row_numbers = rows_of_frames.setdefault(frame, [])
        row_numbers.append(row_number)
    return rows_of_frames

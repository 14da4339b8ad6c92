"""The frame: the bytes with which keys and values begin that name the schema they were written with.

=========== ======================================
1 byte      0: an id follows; 1: a GUID follows
4 bytes     the id of the schema, big endian
or 16 bytes the GUID of the schema
=========== ======================================

A GUID, with its first byte, may lie in a header of the record instead (`record_headers.py`).
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable
from typing import Final

from kstreams.schemas import RegisteredSchema, SchemaRegistry
from kstreams.serdes.base import decode_error

_ID, _GUID = 0, 1
_FRAME_OF_ID = struct.Struct(">BI")
LENGTHS: Final = {_ID: 5, _GUID: 17}
"""How long a frame is, by its first byte."""


def frame_of_id(number: int) -> bytes:
    """The frame of an id.

    Examples
    --------
    >>> frame_of_id(258)
    b'\\x00\\x00\\x00\\x01\\x02'
    """
    return _FRAME_OF_ID.pack(_ID, number)


def frame_of_guid(guid: str) -> bytes:
    """The frame of a GUID.

    Examples
    --------
    >>> frame_of_guid("00000000-0000-0000-0000-000000000007")[-3:]
    b'\\x00\\x00\\x07'
    """
    return bytes((_GUID,)) + uuid.UUID(guid).bytes


def frame_of(data: bytes) -> bytes:
    """The frame with which some bytes begin.

    Raises
    ------
    SerdeError
        When they begin with none: they were not written by way of a schema registry.
    """
    length = LENGTHS.get(data[0]) if data else None
    if length is None or len(data) < length:
        raise decode_error(
            "a value of a schema registry", data, "it begins neither with 0 and an id nor with 1 and a GUID"
        )
    return data[:length]


def schema_of_frame(frame: bytes, registry: SchemaRegistry) -> RegisteredSchema:
    """The schema that a frame names; raises SchemaNotFoundError when the registry does not know it."""
    if frame[0] == _GUID:
        return registry.schema_of_guid(str(uuid.UUID(bytes=frame[1:])))
    return registry.schema(_FRAME_OF_ID.unpack(frame)[1])


def named_in(frame: bytes) -> str:
    """What a frame names, for errors.

    Examples
    --------
    >>> named_in(frame_of_id(7))
    'schema id 7'
    """
    return f"schema {uuid.UUID(bytes=frame[1:])}" if frame[0] == _GUID else f"schema id {_FRAME_OF_ID.unpack(frame)[1]}"


def by_frame(rows: Iterable[bytes | None]) -> dict[bytes, list[int]]:
    """The places of rows by the frame with which they begin; raises SerdeError for a row without one."""
    places: dict[bytes, list[int]] = {}
    frame, of_frame = b"", list[int]()
    for place, row in enumerate(rows):
        if row is None:
            continue
        if not frame or not row.startswith(frame):
            frame = frame_of(row)
            of_frame = places.setdefault(frame, [])
        of_frame.append(place)
    return places

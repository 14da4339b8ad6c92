"""`split_schema`: the schema and the payload of JSON that JsonConverter wrote with `schemas.enable=true`."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from kstreams.kernel.decoders import json_decoder

SCHEMALESS: Final = b"null"
PAYLOAD: Final = b',"payload":'
SCHEMA: Final = b'{"schema":'


class Wrapped(NamedTuple):
    """A payload with its schema.

    Parameters
    ----------
    schema : bytes
        The JSON of the schema. `null` for a payload without a schema.
    payload : bytes
    """

    schema: bytes
    payload: bytes


class _Object(msgspec.Struct, forbid_unknown_fields=True):
    schema: msgspec.Raw
    payload: msgspec.Raw


class _Type(msgspec.Struct):
    type: str


_OBJECT_DECODER = json_decoder(_Object)
_TYPE_DECODER = json_decoder(_Type | None)


def split_schema(data: bytes) -> Wrapped:
    """Split JSON into its schema and its payload. JSON without a schema is the payload.

    Examples
    --------
    >>> split_schema(b'{"schema":{"type":"string"},"payload":"a"}')
    Wrapped(schema=b'{"type":"string"}', payload=b'"a"')
    >>> split_schema(b'{"id":1}').payload
    b'{"id":1}'
    """
    if b'"schema"' in data and b'"payload"' in data:
        try:
            both = _OBJECT_DECODER.decode(data)
            _TYPE_DECODER.decode(both.schema)
            return Wrapped(bytes(both.schema), bytes(both.payload))
        except msgspec.MsgspecError:  # an object that has such fields besides others
            pass
    return Wrapped(SCHEMALESS, data)


def prefix_of(schema: bytes) -> bytes:
    """Return what JsonConverter writes before the payload. A brace follows the payload."""
    return SCHEMA + schema + PAYLOAD

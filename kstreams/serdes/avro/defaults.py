"""The default of a field, which a schema gives in JSON, as the bytes that stand for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.errors import SerdeError
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.wire import DOUBLE, FLOAT, INTS, LONGS


def default_bytes(schema: AvroSchema, part: Any, value: Any) -> bytes:
    """The bytes of a default of a part of a schema; of a union, in the first branch that it fits.

    Raises
    ------
    SerdeError
        When the default does not fit.
    """
    node = schema.node(part)
    if not isinstance(node, list):
        try:
            return _BY_TYPE[node["type"]](schema, node, value)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise SerdeError(f"the default {value!r} is no {node.get('name', node['type'])}") from error
    for number, branch in enumerate(node):
        try:
            return LONGS[number] + default_bytes(schema, branch, value)
        except SerdeError:
            continue
    raise SerdeError(f"the default {value!r} fits no branch of its union")


def _null(schema: AvroSchema, node: Any, value: Any) -> bytes:
    if value is not None:
        raise TypeError
    return b""


def _boolean(schema: AvroSchema, node: Any, value: Any) -> bytes:
    return {True: b"\x01", False: b"\x00"}[_of(bool, value)]


def _of(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError
    return value


def _with_length(data: bytes) -> bytes:
    return LONGS[len(data)] + data


def _record(schema: AvroSchema, node: Any, value: Any) -> bytes:
    given = _of(dict, value)
    parts = (
        default_bytes(schema, field["type"], given[field["name"]] if field["name"] in given else field["default"])
        for field in node["fields"]
    )
    return b"".join(parts)


def _array(schema: AvroSchema, node: Any, value: Any) -> bytes:
    return _block([default_bytes(schema, node["items"], item) for item in _of(list, value)])


def _map(schema: AvroSchema, node: Any, value: Any) -> bytes:
    pairs = _of(dict, value).items()
    return _block([_with_length(key.encode()) + default_bytes(schema, node["values"], item) for key, item in pairs])


def _block(items: list[bytes]) -> bytes:
    return b"".join([LONGS[len(items)], *items, b"\x00"]) if items else b"\x00"


def _fixed(schema: AvroSchema, node: Any, value: Any) -> bytes:
    data: bytes = _of(str, value).encode("latin-1")
    if len(data) != node["size"]:
        raise ValueError
    return data


_BY_TYPE: dict[str, Callable[[AvroSchema, Any, Any], bytes]] = {
    "null": _null,
    "boolean": _boolean,
    "int": lambda schema, node, value: INTS[_of(int, value)],
    "long": lambda schema, node, value: LONGS[_of(int, value)],
    "float": lambda schema, node, value: FLOAT.pack(_of((int, float), value)),
    "double": lambda schema, node, value: DOUBLE.pack(_of((int, float), value)),
    "string": lambda schema, node, value: _with_length(_of(str, value).encode()),
    "bytes": lambda schema, node, value: _with_length(_of(str, value).encode("latin-1")),
    "enum": lambda schema, node, value: LONGS[node["symbols"].index(value)],
    "fixed": _fixed,
    "array": _array,
    "map": _map,
    "record": _record,
    "error": _record,
}

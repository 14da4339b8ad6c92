"""`default_value`: the default of a field, which a schema gives in JSON, as fastavro reads and writes values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.errors import SerdeError
from kstreams.serdes.avro.mapping import tag_of
from kstreams.serdes.avro.schema import AvroSchema


def default_value(schema: AvroSchema, part: Any, value: Any) -> Any:
    """The value of a default of a part of a schema: of a union in the first branch that it fits, with its tag.

    Raises
    ------
    SerdeError
        When the default does not fit.

    Examples
    --------
    >>> from kstreams.serdes.avro.schema import parsed
    >>> default_value(parsed('"bytes"'), ["null", "bytes"], "\\u00ff")
    ('bytes', b'\\xff')
    """
    node = schema.node(part)
    branches = [schema.node(branch) for branch in node] if isinstance(node, list) else [node]
    fitting = next((branch for branch in branches if _fits(branch, value)), None)
    if fitting is None:
        raise SerdeError(f"the default {value!r} is no {' or '.join(map(tag_of, branches))}")
    made = _MADE.get(fitting["type"], _as_it_is)(schema, fitting, value)
    return (tag_of(fitting), made) if isinstance(node, list) else made


def _fits(node: Any, value: Any) -> bool:
    if isinstance(value, bool):
        return bool(node["type"] == "boolean")
    return isinstance(value, _CLASSES[node["type"]])


def _as_it_is(schema: AvroSchema, node: Any, value: Any) -> Any:
    return value


def _record(schema: AvroSchema, node: Any, value: Any) -> Any:
    """Fields that the default leaves out have their own."""
    return {
        field["name"]: default_value(schema, field["type"], value.get(field["name"], field.get("default")))
        for field in node["fields"]
    }


_MADE: dict[str, Callable[[AvroSchema, Any, Any], Any]] = {
    "float": lambda schema, node, value: float(value),
    "double": lambda schema, node, value: float(value),
    "bytes": lambda schema, node, value: value.encode("latin-1"),
    "fixed": lambda schema, node, value: value.encode("latin-1"),
    "array": lambda schema, node, value: [default_value(schema, node["items"], item) for item in value],
    "map": lambda schema, node, value: {
        key: default_value(schema, node["values"], item) for key, item in value.items()
    },
    "record": _record,
    "error": _record,
}

_CLASSES: dict[str, Any] = {
    "null": type(None),
    "boolean": bool,
    **dict.fromkeys(("int", "long"), int),
    **dict.fromkeys(("float", "double"), (int, float)),
    **dict.fromkeys(("bytes", "fixed", "string", "enum"), str),
    "array": list,
    **dict.fromkeys(("map", "record", "error"), dict),
}
"""Of what JSON gives."""

"""The mapping between parts of Avro schemas and Python types, and between the branches and members of unions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final, Literal, Union

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import PLAIN, Kind
from kstreams.serdes.avro.logical import AvroDuration, LogicalType, logical_of
from kstreams.serdes.avro.schema import RECORDS, AvroSchema, SchemaNode, short_name


def default_value(schema: AvroSchema, part: SchemaNode, value: Any) -> Any:
    """Convert a default of a schema from JSON. In a union, the first fitting branch is used, and its tag is added.

    Raises
    ------
    SerdeError
        If the default does not fit.

    Examples
    --------
    >>> from kstreams.serdes.avro.schema import parsed
    >>> default_value(parsed('"bytes"'), ["null", "bytes"], "\\u00ff")
    ('bytes', b'\\xff')
    """
    node = schema.node(part)
    branches = [schema.node(branch) for branch in node] if isinstance(node, list) else [node]
    fitting = next((branch for branch in branches if _fits_default(branch, value)), None)
    if fitting is None:
        raise SerdeError(f"the default {value!r} is no {' or '.join(map(tag_of, branches))}")
    converted = _CONVERSIONS.get(fitting["type"], _unchanged)(schema, fitting, value)
    return (tag_of(fitting), converted) if isinstance(node, list) else converted


def _fits_default(node: SchemaNode, value: object) -> bool:
    if isinstance(value, bool):
        return bool(node["type"] == "boolean")
    return isinstance(value, _JSON_CLASSES[node["type"]])


def _unchanged(schema: AvroSchema, node: SchemaNode, value: object) -> object:
    return value


def _convert_record(schema: AvroSchema, node: SchemaNode, value: Any) -> Any:
    """Convert the default of a record. A missing field has its own default."""
    return {
        field["name"]: default_value(schema, field["type"], value.get(field["name"], field.get("default")))
        for field in node["fields"]
    }


_CONVERSIONS: dict[str, Callable[[AvroSchema, SchemaNode, Any], Any]] = {
    "float": lambda schema, node, value: float(value),
    "double": lambda schema, node, value: float(value),
    "bytes": lambda schema, node, value: value.encode("latin-1"),
    "fixed": lambda schema, node, value: value.encode("latin-1"),
    "array": lambda schema, node, value: [default_value(schema, node["items"], item) for item in value],
    "map": lambda schema, node, value: {
        key: default_value(schema, node["values"], item) for key, item in value.items()
    },
    "record": _convert_record,
    "error": _convert_record,
}

_JSON_CLASSES: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    **dict.fromkeys(("int", "long"), int),
    **dict.fromkeys(("float", "double"), (int, float)),
    **dict.fromkeys(("bytes", "fixed", "string", "enum"), str),
    "array": list,
    **dict.fromkeys(("map", "record", "error"), dict),
}
"""The classes of JSON values that are defaults of each type."""


CLASSES: Final[dict[str, type]] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "fixed": bytes,
    "string": str,
    "enum": str,
    "array": list,
    "map": dict,
    "record": dict,
    "error": dict,
}
"""The class of the values of each type, unless a logical type or a declared class overrides it."""

COLLECTIONS: Final = (list, tuple, set, frozenset)


def takes_none(kind: Kind) -> bool:
    """True if None is a value of a kind."""
    return kind.is_plain or kind.base is type(None) or (kind.base is Union and any(map(takes_none, kind.arguments)))


def member_for(kind: Kind, node: SchemaNode) -> Kind | None:
    """Return the kind for a part of a schema. In a union of kinds, this is the fitting member, or None."""
    if kind.base is not Union:
        return kind
    members = [member for member in kind.arguments if fits(member, node)]
    if node["type"] in RECORDS and len(members) > 1:
        name = short_name(node["name"])
        return next((member for member in members if _name_of(member) == name), None)
    return members[0] if members else None


def fits(kind: Kind, node: SchemaNode) -> bool:
    """True if values of a part of a schema may be values of a kind."""
    if kind.is_plain:
        return True
    logical = logical_of(node)
    return kind.base in _value_classes(node, logical) or _fits_class(kind, node)


def _value_classes(node: SchemaNode, logical: LogicalType | None) -> tuple[Any, ...]:
    """Return the classes of values of a part of a schema."""
    if logical is not None:
        return (logical.cls, dt.timedelta) if logical.cls is AvroDuration else (logical.cls,)
    if node["type"] == "array":
        return COLLECTIONS
    cls = CLASSES[node["type"]]
    return (cls, Literal) if node["type"] in ("string", "enum", "int", "long") else (cls,)


def _fits_class(kind: Kind, node: SchemaNode) -> bool:
    if node["type"] == "enum":
        return kind.is_enum
    return node["type"] in RECORDS and kind.shape is not None


def _name_of(kind: Kind) -> str:
    return str(kind.extra.get("name") or getattr(kind.base, "__name__", ""))


def is_direct(kind: Kind, node: SchemaNode, logical: LogicalType | None) -> bool:
    """True if values of a part of a schema need neither conversion nor check to be values of a kind."""
    return kind.is_plain or (not kind.is_limited and kind.base is (logical.cls if logical else CLASSES[node["type"]]))


def is_raw(kind: Kind, logical: LogicalType) -> bool:
    """True if values of a kind are values of the type that a logical type is based on."""
    return kind.base is logical.raw


def is_map(kind: Kind) -> bool:
    """True if a kind is a dict with string keys and declares the type of its values."""
    return kind.base is dict and len(kind.arguments) == 2 and kind.arguments[0].base is str


def items_of(kind: Kind) -> Kind:
    """Return the kind of the items of an array."""
    return kind.arguments[0] if kind.base in COLLECTIONS and kind.arguments else PLAIN


def tag_of(node: SchemaNode) -> str:
    """Return fastavro's tag for a branch of a union: the name of the branch, or its type if it has no name."""
    return str(node.get("name", node["type"]))


def schema_in_words(node: SchemaNode) -> str:
    """Describe a part of a schema for errors."""
    if isinstance(node, list):
        return "a union"
    return str(node.get("name") or node.get("logicalType") or node["type"])


def is_record(node: SchemaNode) -> bool:
    """True if values of a part of a schema are records."""
    return node["type"] in RECORDS


def has_several_records(branches: list[SchemaNode]) -> bool:
    """True if a union has several records. Their dicts are tagged with the name of the record to distinguish them."""
    return sum(map(is_record, branches)) > 1

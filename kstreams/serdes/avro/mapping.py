"""The mapping between parts of Avro schemas and Python classes, and between branches of unions and their members."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final, Literal, Union

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import PLAIN, Kind
from kstreams.serdes.avro.logical import AvroDuration, Logical, logical_of
from kstreams.serdes.avro.schema import RECORDS, AvroSchema, SchemaNode


def default_value(schema: AvroSchema, part: SchemaNode, value: Any) -> Any:
    """Convert a default of a schema from JSON. In a union, the first fitting branch counts, and its tag is added.

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
    fitting = next((branch for branch in branches if _fits(branch, value)), None)
    if fitting is None:
        raise SerdeError(f"the default {value!r} is no {' or '.join(map(tag_of, branches))}")
    converted = _CONVERSIONS.get(fitting["type"], _unchanged)(schema, fitting, value)
    return (tag_of(fitting), converted) if isinstance(node, list) else converted


def _fits(node: SchemaNode, value: Any) -> bool:
    if isinstance(value, bool):
        return bool(node["type"] == "boolean")
    return isinstance(value, _CLASSES[node["type"]])


def _unchanged(schema: AvroSchema, node: SchemaNode, value: Any) -> Any:
    return value


def _record(schema: AvroSchema, node: SchemaNode, value: Any) -> Any:
    """Convert the default of a record. Missing fields take their own defaults."""
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
"""The classes of JSON values for the defaults of each type."""


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
"""The class of the values of each type, if neither a logical type nor a declared class overrides it."""

COLLECTIONS: Final = (list, tuple, set, frozenset)


def takes_none(kind: Kind) -> bool:
    """Return True if None is a value of a kind."""
    return kind.is_plain or kind.base is type(None) or (kind.base is Union and any(map(takes_none, kind.arguments)))


def member_for(kind: Kind, node: SchemaNode) -> Kind | None:
    """Return the kind, or the fitting member of a union of kinds, for a part of a schema; None if no member fits."""
    if kind.base is not Union:
        return kind
    members = [member for member in kind.arguments if fits(member, node)]
    named = [member for member in members if _name_of(member) == str(node.get("name", "")).rpartition(".")[2]]
    if node["type"] in RECORDS and len(members) > 1:
        return named[0] if named else None
    return members[0] if members else None


def fits(kind: Kind, node: SchemaNode) -> bool:
    """Return True if values of a part of a schema may be values of a kind."""
    if kind.is_plain:
        return True
    logical = logical_of(node)
    return kind.base in _bases(node, logical) or _fits_class(kind, node)


def _bases(node: SchemaNode, logical: Logical | None) -> tuple[Any, ...]:
    """Return the classes of values of a part of a schema."""
    if logical is not None:
        return (logical.cls, dt.timedelta) if logical.cls is AvroDuration else (logical.cls,)
    if node["type"] == "array":
        return COLLECTIONS
    return (
        (CLASSES[node["type"]], Literal)
        if node["type"] in ("string", "enum", "int", "long")
        else (CLASSES[node["type"]],)
    )


def _fits_class(kind: Kind, node: SchemaNode) -> bool:
    if node["type"] == "enum":
        return kind.is_enum
    return node["type"] in RECORDS and kind.shape is not None


def _name_of(kind: Kind) -> str:
    return str(kind.extra.get("name") or getattr(kind.base, "__name__", ""))


def is_direct(kind: Kind, node: SchemaNode, logical: Logical | None) -> bool:
    """Return True if values of a part of a schema need neither conversion nor check to be values of a kind."""
    return kind.is_plain or (not kind.is_limited and kind.base is (logical.cls if logical else CLASSES[node["type"]]))


def is_raw(kind: Kind, logical: Logical) -> bool:
    """Return True if values of a kind are values of the type below a logical type."""
    return kind.base is logical.raw


def is_map(kind: Kind) -> bool:
    """Return True if a kind declares the class of the values of a map."""
    return kind.base is dict and len(kind.arguments) == 2 and kind.arguments[0].base is str


def items_of(kind: Kind) -> Kind:
    """Return the kind of the items of an array."""
    return kind.arguments[0] if kind.base in COLLECTIONS and kind.arguments else PLAIN


def tag_of(node: SchemaNode) -> str:
    """Return fastavro's tag of a branch of a union: its name, or its type if it has no name."""
    return str(node.get("name", node["type"]))


def named(node: SchemaNode) -> str:
    """Return the name of a part of a schema for errors."""
    if isinstance(node, list):
        return "a union"
    return str(node.get("name") or node.get("logicalType") or node["type"])


def is_record(node: SchemaNode) -> bool:
    """Return True if values of a part of a schema are records."""
    return node["type"] in RECORDS


def has_several_records(branches: list[SchemaNode]) -> bool:
    """Return True if a union has several records, whose dicts need the name of the record to be told apart."""
    return sum(map(is_record, branches)) > 1

"""Which class of Python a part of a schema has, and which member of a union of classes fits a branch."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final, Literal, Union

from kstreams.serdes.avro.kinds import PLAIN, Kind
from kstreams.serdes.avro.logical import AvroDuration, Logical, logical_of
from kstreams.serdes.avro.schema import RECORDS

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
"""As what each type is read where nothing says otherwise."""

COLLECTIONS: Final = (list, tuple, set, frozenset)


def takes_none(kind: Kind) -> bool:
    """Whether None is a value of a kind."""
    return kind.is_plain or kind.base is type(None) or (kind.base is Union and any(map(takes_none, kind.arguments)))


def member_for(kind: Kind, node: Any) -> Kind | None:
    """The kind of the values of a part of a schema, which is no union; None where a union has none for it."""
    if kind.base is not Union:
        return kind
    members = [member for member in kind.arguments if fits(member, node)]
    named = [member for member in members if _name_of(member) == str(node.get("name", "")).rpartition(".")[2]]
    if node["type"] in RECORDS and len(members) > 1:
        return named[0] if named else None
    return members[0] if members else None


def fits(kind: Kind, node: Any) -> bool:
    """Whether values of a part of a schema may be values of a kind."""
    if kind.is_plain:
        return True
    logical = logical_of(node)
    return kind.base in _bases(node, logical) or _fits_class(kind, node)


def _bases(node: Any, logical: Logical | None) -> tuple[Any, ...]:
    """The classes of values of a part of a schema."""
    if logical is not None:
        return (logical.cls, dt.timedelta) if logical.cls is AvroDuration else (logical.cls,)
    if node["type"] == "array":
        return COLLECTIONS
    return (
        (CLASSES[node["type"]], Literal)
        if node["type"] in ("string", "enum", "int", "long")
        else (CLASSES[node["type"]],)
    )


def _fits_class(kind: Kind, node: Any) -> bool:
    if node["type"] == "enum":
        return kind.is_enum
    return node["type"] in RECORDS and kind.shape is not None


def _name_of(kind: Kind) -> str:
    return str(kind.extra.get("name") or getattr(kind.base, "__name__", ""))


def is_direct(kind: Kind, node: Any, logical: Logical | None) -> bool:
    """Whether values of a part of a schema are values of a kind as they are read, without a closer look."""
    return kind.is_plain or (not kind.is_limited and kind.base is (logical.cls if logical else CLASSES[node["type"]]))


def is_raw(kind: Kind, logical: Logical) -> bool:
    """Whether a kind wants values as they are without their logical type."""
    return kind.base is logical.raw


def is_map(kind: Kind) -> bool:
    """Whether a kind says of what class the values of a map are."""
    return kind.base is dict and len(kind.arguments) == 2 and kind.arguments[0].base is str


def items_of(kind: Kind) -> Kind:
    """The kind of the items of an array."""
    return kind.arguments[0] if kind.base in COLLECTIONS and kind.arguments else PLAIN


def tag_of(node: Any) -> str:
    """By what fastavro calls a branch of a union: its name, or its type where it has none."""
    return str(node.get("name", node["type"]))


def named(node: Any) -> str:
    """A part of a schema, for errors."""
    if isinstance(node, list):
        return "a union"
    return str(node.get("name") or node.get("logicalType") or node["type"])


def is_record(node: Any) -> bool:
    """Whether values of a part of a schema are records."""
    return node["type"] in RECORDS


def has_several_records(branches: list[Any]) -> bool:
    """Whether values of a union, as dicts, need the name of their record beside them."""
    return sum(map(is_record, branches)) > 1

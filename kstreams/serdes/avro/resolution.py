"""Avro's rules of schema resolution: which part of the reader's schema takes what a writer wrote."""

from __future__ import annotations

from typing import Any, Final

from kstreams.serdes.avro.schema import NAMED, AvroSchema

PROMOTIONS: Final = frozenset(
    {
        ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"),
        ("float", "double"), ("string", "bytes"), ("bytes", "string"),
    }
)  # fmt: skip
"""What a reader takes as another primitive type."""


def branch_for(written: AvroSchema, node: Any, reader: AvroSchema, part: Any) -> Any:
    """The part of the reader's schema that takes a type of the writer's; None where none does.

    Of a union it is the first branch of the same type, else the first that takes it, as in Java: bytes are bytes,
    though text that stands before them would take them too. Whether fields can be resolved is seen when they are.
    """
    wanted = reader.node(part)
    branches = list(map(reader.node, wanted if isinstance(wanted, list) else [wanted]))
    able = [branch for branch in branches if takes(written, node, reader, branch)]
    return next((branch for branch in able if branch["type"] == node["type"]), able[0] if able else None)


def takes(written: AvroSchema, node: Any, reader: AvroSchema, wanted: Any) -> bool:
    """Whether a type of the reader's takes one of the writer's; neither is a union."""
    old, new = node["type"], wanted["type"]
    if old in NAMED and new in NAMED:
        return _same_kind(old, new) and _same_name(node, wanted) and node.get("size") == wanted.get("size")
    if old == new in ("array", "map"):
        inside = "items" if old == "array" else "values"
        return _inside(written, node[inside], reader, wanted[inside])
    return old == new or (old, new) in PROMOTIONS


def _inside(written: AvroSchema, old: Any, reader: AvroSchema, new: Any) -> bool:
    """Whether items may be resolved; which branch of a union an item is of, is known when it is read."""
    node = written.node(old)
    return isinstance(node, list) or branch_for(written, node, reader, new) is not None


def _same_kind(old: str, new: str) -> bool:
    return old == new or {old, new} == {"record", "error"}


def _same_name(node: Any, wanted: Any) -> bool:
    """Whether names agree without their namespaces, or the reader knows the writer's as an alias."""
    full = node["name"]
    short = _short(full)
    return short == _short(wanted["name"]) or any(alias in (full, short) for alias in wanted.get("aliases", ()))


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def field_for(field: Any, wanted: Any) -> Any:
    """The field of the reader's record that takes a field of the writer's, by its name or an alias; None without."""
    fields, name = wanted["fields"], field["name"]
    by_name = next((found for found in fields if found["name"] == name), None)
    return by_name or next((found for found in fields if name in found.get("aliases", ())), None)

"""`AvroSchema`: a schema of Avro as parsed by fastavro, with the named types within it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kstreams.errors import ConfigError, SerdeError

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
COMPLEX: Final = frozenset({"record", "error", "enum", "fixed", "array", "map"})
NAMED: Final = frozenset({"record", "error", "enum", "fixed"})


@dataclass(frozen=True, eq=False)
class AvroSchema:
    """A schema whose names are full names.

    Parameters
    ----------
    root : object
        A name, an object with a `type`, or a list: a union.
    names : mapping of str to dict
        The named types by their full names.
    """

    root: Any
    names: Mapping[str, dict[str, Any]]

    def node(self, part: Any) -> Any:
        """A part of the schema as an object whose `type` is a primitive or complex one, or as a list of branches."""
        while not isinstance(part, list):
            if isinstance(part, str):
                part = {"type": part} if part in PRIMITIVES else self.names[part]
            kind = part["type"]
            if isinstance(kind, str) and (kind in PRIMITIVES or kind in COMPLEX):
                return part
            part = kind
        return part

    @property
    def record_name(self) -> str:
        """The full name of the record that it is, or the name of its type."""
        root = self.node(self.root)
        return "union" if isinstance(root, list) else str(root.get("name", root["type"]))


def parsed(text: str, referenced: Iterable[str] = ()) -> AvroSchema:
    """The schema of a text.

    Parameters
    ----------
    text : str
        JSON, or the name of a primitive type.
    referenced : iterable of str
        The texts of schemas whose types it names, each before those that name it.

    Raises
    ------
    SerdeError
        When a text is no schema of Avro; says why.
    """
    fastavro = require_fastavro()
    names: dict[str, Any] = {}
    try:
        for other in referenced:
            fastavro.parse_schema(_json(other), named_schemas=names)
        return AvroSchema(fastavro.parse_schema(_json(text), named_schemas=names), names)
    except Exception as error:
        raise SerdeError(f"{text if len(text) < 200 else text[:199] + '…'} is no schema of Avro: {error}") from error


def _json(text: str) -> Any:
    return text if text in PRIMITIVES else json.loads(text)


def require_fastavro() -> Any:
    """The library that knows Avro, loaded when it is first asked for."""
    try:
        import fastavro
    except ModuleNotFoundError:
        raise ConfigError(
            "ks.Avro needs fastavro, which is not installed: install it with `pip install 'kstreams-dsl[registry]'`"
        ) from None
    return fastavro


def parts_of(node: Any) -> list[Any]:
    """The parts that a part of a schema is made of.

    Examples
    --------
    >>> parts_of({"type": "map", "values": "int"})
    ['int']
    """
    if isinstance(node, list):
        return node
    fields = [field["type"] for field in node.get("fields", ())]
    return fields or [node[name] for name in ("items", "values") if name in node]


def all_parts(schema: AvroSchema, start: Any = None) -> Iterator[Any]:
    """The parts within a part of a schema, by default within the whole, each once; with the part itself."""
    seen: set[int] = set()
    waiting = [schema.root if start is None else start]
    while waiting:
        node = schema.node(waiting.pop())
        if isinstance(node, dict) and "name" in node:
            if id(node) in seen:
                continue
            seen.add(id(node))
        yield node
        waiting += parts_of(node)


def holds_itself(schema: AvroSchema, node: Any) -> bool:
    """Whether a record may hold one of its own kind."""
    return any(part is node for inner in parts_of(node) for part in all_parts(schema, inner))


def may_be_empty(schema: AvroSchema, part: Any) -> bool:
    """Whether a value may take no bytes at all."""
    node = schema.node(part)
    if isinstance(node, list) or holds_itself(schema, node):
        return False
    if "fields" in node:
        return all(may_be_empty(schema, field["type"]) for field in node["fields"])
    return bool(node["type"] == "null" or node.get("size") == 0)


def outline(schema: AvroSchema) -> Any:
    """What of a schema decides how bytes are read: no namespaces, comments, aliases or defaults.

    Examples
    --------
    >>> outline(parsed('{"type": "enum", "name": "shop.Color", "symbols": ["RED"], "doc": "of a car"}'))
    {'type': 'enum', 'symbols': ['RED'], 'name': 'Color'}
    """
    return _outline(schema, schema.root, set())


_DECISIVE = ("type", "logicalType", "precision", "scale", "size", "symbols")


def _outline(schema: AvroSchema, part: Any, known: set[str]) -> Any:
    node = schema.node(part)
    if isinstance(node, list):
        return [_outline(schema, branch, known) for branch in node]
    drawn = {key: node[key] for key in _DECISIVE if key in node}
    if "name" in node:
        drawn["name"] = node["name"].rpartition(".")[2]
        if node["name"] in known:
            return drawn["name"]
        known.add(node["name"])
    drawn |= {key: _outline(schema, node[key], known) for key in ("items", "values") if key in node}
    if "fields" in node:
        drawn["fields"] = [(field["name"], _outline(schema, field["type"], known)) for field in node["fields"]]
    return drawn

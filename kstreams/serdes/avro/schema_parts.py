"""Functions on the parts of an Avro schema: iteration, recursion, and the outline that decides how bytes are read."""

from __future__ import annotations

from collections.abc import Iterator

from kstreams.serdes.avro.schema import AvroSchema, SchemaNode, short_name


def parts_of(node: SchemaNode) -> list[SchemaNode]:
    """Return the direct parts of a part of a schema.

    Examples
    --------
    >>> parts_of({"type": "map", "values": "int"})
    ['int']
    """
    if isinstance(node, list):
        return node
    fields = [field["type"] for field in node.get("fields", ())]
    return fields or [node[name] for name in ("items", "values") if name in node]


def all_parts(schema: AvroSchema, start: object = None) -> Iterator[SchemaNode]:
    """Yield a part of a schema and all parts inside it, each once. By default, yield the parts of the whole schema."""
    visited: set[int] = set()
    pending = [schema.root if start is None else start]
    while pending:
        node = schema.node(pending.pop())
        if isinstance(node, dict) and "name" in node:
            if id(node) in visited:
                continue
            visited.add(id(node))
        yield node
        pending += parts_of(node)


def holds_itself(schema: AvroSchema, node: object) -> bool:
    """True if a record type is recursive."""
    return any(part is node for inner in parts_of(node) for part in all_parts(schema, inner))


def may_be_empty(schema: AvroSchema, part: object) -> bool:
    """True if the encoding of a value may have no bytes."""
    node = schema.node(part)
    if isinstance(node, list) or holds_itself(schema, node):
        return False
    if "fields" in node:
        return all(may_be_empty(schema, field["type"]) for field in node["fields"])
    return bool(node["type"] == "null" or node.get("size") == 0)


def outline(schema: AvroSchema) -> SchemaNode:
    """Return a schema without namespaces, docs, aliases and defaults. They do not change how bytes are read.

    Examples
    --------
    >>> from kstreams.serdes.avro.schema import parsed
    >>> outline(parsed('{"type": "enum", "name": "shop.Color", "symbols": ["RED"], "doc": "of a car"}'))
    {'type': 'enum', 'symbols': ['RED'], 'name': 'Color'}
    """
    return _outline(schema, schema.root, set())


_DECODING_ATTRIBUTES = ("type", "logicalType", "precision", "scale", "size", "symbols")


def _outline(schema: AvroSchema, part: object, defined_names: set[str]) -> SchemaNode:
    node = schema.node(part)
    if isinstance(node, list):
        return [_outline(schema, branch, defined_names) for branch in node]
    result = {key: node[key] for key in _DECODING_ATTRIBUTES if key in node}
    if "name" in node:
        result["name"] = short_name(node["name"])
        if node["name"] in defined_names:
            return result["name"]
        defined_names.add(node["name"])
    result |= {key: _outline(schema, node[key], defined_names) for key in ("items", "values") if key in node}
    if "fields" in node:
        result["fields"] = [(field["name"], _outline(schema, field["type"], defined_names)) for field in node["fields"]]
    return result

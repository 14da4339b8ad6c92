"""Compatibility of JSON Schemas: whether every document of the writer's schema is valid by the reader's schema.

The rules are those of Confluent. If the writer's schema is open (`additionalProperties`), a property that it does not
name may have any value, so the reader's schema may not describe it. A new required property needs a default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.incompatibility import Incompatibility, importing
from kstreams.schemas.references import ResolvedSchema

with importing("JSON Schemas"):
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft7Validator, validator_for

Node: TypeAlias = Any
"""A part of a schema: true, false or an object."""
NodeObject: TypeAlias = dict[str, Node]
"""A part of a schema that is an object."""
Incompatibilities = Iterator[Incompatibility]

_ALL_TYPES = frozenset(("null", "boolean", "object", "array", "number", "integer", "string"))
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_NOT_COMPARED = ("if", "then", "else", "contains", "unevaluatedProperties", "unevaluatedItems", "dependentSchemas")
_OF_TYPE = {
    **dict.fromkeys(
        ("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "multipleOf"), ("number", "integer")
    ),
    **dict.fromkeys(("maxLength", "minLength", "pattern"), ("string",)),
    **dict.fromkeys(("maxItems", "minItems", "uniqueItems", "contains", "unevaluatedItems"), ("array",)),
    **dict.fromkeys(("maxProperties", "minProperties", "unevaluatedProperties", "dependentSchemas"), ("object",)),
}


def incompatibilities(reader: ResolvedSchema, writer: ResolvedSchema) -> list[Incompatibility]:
    """Return the reasons why documents of the writer's schema are not all valid by the reader's schema."""
    return list(_Comparison(JsonDocument(reader), JsonDocument(writer)).compare_roots())


class JsonDocument:
    """A JSON Schema with the schemas that it refers to.

    Parameters
    ----------
    schema : ResolvedSchema

    Raises
    ------
    RegistryError
        If it is not a JSON Schema.
    """

    def __init__(self, schema: ResolvedSchema) -> None:
        self.root = _parse(schema.text)
        self._imports = {name: _parse(text) for name, text in schema.imports}

    def followed(self, node: Node) -> Node:
        """Return the target of a `$ref`, merged with the keywords beside it; other nodes are returned unchanged."""
        visited: list[str] = []
        while isinstance(node, dict) and "$ref" in node:
            reference = str(node["$ref"])
            if reference in visited:
                raise RegistryError(f"this is no JSON Schema: {reference} refers to itself")
            visited.append(reference)
            target = self._target(reference)
            beside = {key: value for key, value in node.items() if key != "$ref"}
            node = {**target, **beside} if isinstance(target, dict) else target
        return node

    def _target(self, reference: str) -> Node:
        name, _, pointer = reference.partition("#")
        node = self._imports.get(name, self.root) if name else self.root
        if name and name not in self._imports and self.root_id != name:
            raise RegistryError(f"this JSON Schema refers to {reference}, which is none of its references")
        for part in filter(None, pointer.split("/")):
            node = _step(node, part.replace("~1", "/").replace("~0", "~"), reference)
        return node

    @property
    def root_id(self) -> str:
        """The `$id` of the schema; empty if it has none."""
        return str(self.root.get("$id", "")) if isinstance(self.root, dict) else ""


def _step(node: Node, part: str, reference: str) -> Node:
    try:
        return node[int(part)] if isinstance(node, list) else node[part]
    except (KeyError, IndexError, ValueError, TypeError):
        raise RegistryError(f"this is no JSON Schema: {reference} leads nowhere") from None


def _parse(text: str) -> Node:
    try:
        node = json.loads(text)
        validator_for(node, default=Draft7Validator).check_schema(node)
    except (ValueError, RecursionError) as error:
        raise RegistryError(f"this is no JSON Schema: {error}") from None
    except SchemaError as error:
        raise RegistryError(f"this is no JSON Schema: {error.message}") from None
    return node


class _Comparison:
    """The comparison of two schemas, with the pairs of nodes that are compared already."""

    def __init__(self, reader: JsonDocument, writer: JsonDocument) -> None:
        self._reader = reader
        self._writer = writer
        self._compared: set[tuple[str, str]] = set()

    def compare_roots(self) -> Incompatibilities:
        """Yield the documents of the writer's schema that the reader's schema refuses."""
        return self.compare("", self._reader.root, self._writer.root)

    def compare(self, path: str, read: Node, written: Node) -> Incompatibilities:
        """Yield the values of the writer's node that the reader's node refuses."""
        pair = (_key(read), _key(written))
        if pair in self._compared:
            return
        self._compared.add(pair)
        read = self._reader.followed(read)
        written = self._writer.followed(written)
        if written is False or read is True or read == {}:
            return
        if read is False:
            yield _at(path, "may be there, and is not read any more")
            return
        yield from self._objects(path, read, {} if written is True else written)

    def _objects(self, path: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
        for keyword in ("oneOf", "anyOf"):
            if keyword in written:
                other_keywords = _without(written, keyword)
                for alternative in written[keyword]:
                    yield from self.compare(path, read, _merged(other_keywords, self._writer.followed(alternative)))
                return
        if "allOf" in written:
            yield from self._all_of(path, read, written)
            return
        for keyword in ("oneOf", "anyOf"):
            if keyword in read:
                yield from self._one_of(path, keyword, read, written)
                read = _without(read, keyword)
        for alternative in read.get("allOf", ()):
            yield from self.compare(path, alternative, written)
        yield from self._keywords(path, read, written)

    def _all_of(self, path: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
        """Compare with the conjunction of all parts: documents of the writer are valid by each of them."""
        whole = _without(written, "allOf")
        for part in written["allOf"]:
            whole = _merged(whole, self._writer.followed(part))
        yield from self.compare(path, read, whole)

    def _one_of(self, path: str, keyword: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
        compared_before = set(self._compared)
        for alternative in read[keyword]:
            if next(self.compare(path, alternative, written), None) is None:
                return
            self._compared = set(compared_before)
        yield _at(path, f"{_description(written)} is read as none of the {len(read[keyword])} schemas of {keyword}")

    def _keywords(self, path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
        lost = _lost_types(read, written)
        if lost:
            yield _at(path, f"may be {' or '.join(lost)}, which is not read any more")
            return
        yield from _values(path, read, written)
        types = _types(written)
        for keyword in read:
            concerned = _OF_TYPE.get(keyword)
            check = _CHECKS.get(keyword)
            if check is not None and (concerned is None or types & set(concerned)):
                yield from check(path, keyword, read, written)
        yield from self._negation(path, read, written)
        if "object" in types:
            yield from self._properties(path, read, written)
        if "array" in types:
            yield from self._items(path, read, written)

    def _negation(self, path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
        if "not" not in read:
            return
        swapped = _Comparison(self._writer, self._reader)
        if "not" not in written or next(swapped.compare(path, written["not"], read["not"]), None) is not None:
            yield _at(path, "`not` excludes what was valid before")

    def _properties(self, path: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
        for name in sorted(read.get("properties", {}).keys() | written.get("properties", {}).keys()):
            place = f"{path}.{name}" if path else name
            for subschema in _schemas_of(read, name):
                yield from self.compare(place, subschema, _schemas_of(written, name)[0])
        for pattern in sorted(read.get("patternProperties", {}).keys() | written.get("patternProperties", {}).keys()):
            yield from self.compare(f"{path}.{{{pattern}}}", _of_pattern(read, pattern), _of_pattern(written, pattern))
        yield from self.compare(
            f"{path}.*", read.get("additionalProperties", True), written.get("additionalProperties", True)
        )
        if "propertyNames" in read:
            yield from self.compare(f"{path}.(names)", read["propertyNames"], written.get("propertyNames", True))
        for name in sorted(set(read.get("required", ())) - set(written.get("required", ()))):
            schema = self._reader.followed(_schemas_of(read, name)[0])
            if not (isinstance(schema, dict) and "default" in schema):
                yield _at(f"{path}.{name}" if path else name, "is required, was not, and has no default")
        yield from _dependencies(path, read, written)

    def _items(self, path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
        first_read, rest_read = _tuple(read)
        first_written, rest_written = _tuple(written)
        for place in range(max(len(first_read), len(first_written))):
            read_schema = first_read[place] if place < len(first_read) else rest_read
            written_schema = first_written[place] if place < len(first_written) else rest_written
            yield from self.compare(f"{path}[{place}]", read_schema, written_schema)
        yield from self.compare(f"{path}[]", rest_read, rest_written)


def _key(node: Node) -> str:
    return json.dumps(node, sort_keys=True)


def _without(node: dict[str, object], keyword: str) -> dict[str, object]:
    return {key: value for key, value in node.items() if key != keyword}


def _merged(schema: NodeObject, other: Node) -> Node:
    """Return a schema of the values that are valid by both. The first has priority for a keyword that both have."""
    if not isinstance(other, dict):
        return schema if other else False
    required = [*schema.get("required", ()), *other.get("required", ())]
    properties = {**other.get("properties", {}), **schema.get("properties", {})}
    merged = {**other, **schema}
    return merged | ({"required": required} if required else {}) | ({"properties": properties} if properties else {})


def _types(node: Mapping[str, Node]) -> frozenset[str]:
    """Return the types of the values that are valid by a schema."""
    names = node.get("type")
    if names is None:
        values = _listed(node)
        return _ALL_TYPES if values is None else frozenset(map(_type_of, values))
    return frozenset([names] if isinstance(names, str) else names)


def _type_of(value: object) -> str:
    """Return the JSON name of the type of a value."""
    return _JSON_TYPES[type(value)]


_JSON_TYPES = {
    type(None): "null",
    bool: "boolean",
    dict: "object",
    list: "array",
    float: "number",
    int: "integer",
    str: "string",
}


def _lost_types(read: dict[str, object], written: dict[str, object]) -> list[str]:
    types = _types(read)
    wide = types | {"integer"} if "number" in types else types
    lost = _types(written) - wide
    return sorted(lost - {"integer"} if "number" in lost else lost)


def _listed(node: Mapping[str, Node]) -> list[Node] | None:
    return [node["const"]] if "const" in node else node.get("enum")


def _values(path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
    readable = _listed(read)
    listed = _listed(written)
    if readable is None:
        return
    if listed is None:
        yield _at(path, "may be any value, and is read only as one of a few")
        return
    keys = {_key(value) for value in readable}
    lost = [_key(value) for value in listed if _key(value) not in keys]
    if lost:
        yield _at(path, f"may be {', '.join(lost)}, which is not read any more")


def _upper(path: str, keyword: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
    if written.get(keyword) is None or written[keyword] > read[keyword]:
        yield _at(path, f"{keyword} was {written.get(keyword, 'not set')} and is {read[keyword]}")


def _lower(path: str, keyword: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
    if written.get(keyword, 0 if keyword.startswith("min") and keyword != "minimum" else None) is None:
        yield _at(path, f"{keyword} was not set and is {read[keyword]}")
    elif written.get(keyword, 0) < read[keyword]:
        yield _at(path, f"{keyword} was {written.get(keyword, 'not set')} and is {read[keyword]}")


def _multiple(path: str, keyword: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
    if written.get(keyword) is None or written[keyword] % read[keyword] != 0:
        yield _at(path, f"{keyword} was {written.get(keyword, 'not set')} and is {read[keyword]}")


def _unique(path: str, keyword: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
    if read[keyword] and not written.get(keyword):
        yield _at(path, "may hold an item twice, which is not read any more")


def _equal(path: str, keyword: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
    if read[keyword] != written.get(keyword):
        yield _at(path, f"{keyword} was {_short(written.get(keyword))} and is {_short(read[keyword])}")


_CHECKS: dict[str, Callable[[str, str, NodeObject, NodeObject], Incompatibilities]] = {
    **dict.fromkeys(_UPPER, _upper),
    **dict.fromkeys(_LOWER, _lower),
    **dict.fromkeys(_NOT_COMPARED, _equal),
    "multipleOf": _multiple,
    "uniqueItems": _unique,
    "pattern": _equal,
}


def _schemas_of(node: Mapping[str, Node], name: str) -> list[Node]:
    """Return the schemas of a property: its own and those of matching patterns, else that of additional properties."""
    own = [node["properties"][name]] if name in node.get("properties", {}) else []
    matched = [schema for pattern, schema in node.get("patternProperties", {}).items() if re.search(pattern, name)]
    return [*own, *matched] or [node.get("additionalProperties", True)]


def _of_pattern(node: Mapping[str, Node], pattern: str) -> Node:
    return node.get("patternProperties", {}).get(pattern, node.get("additionalProperties", True))


def _tuple(node: Mapping[str, Node]) -> tuple[Sequence[Node], Node]:
    """Return the schemas of the first items of an array, and the schema of the other items, by old and new drafts."""
    items = node.get("items", True)
    if isinstance(items, list):
        return items, node.get("additionalItems", True)
    return node.get("prefixItems", ()), items


def _dependencies(path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
    dependent_before = _dependent(written)
    for name, needed in sorted(_dependent(read).items()):
        place = f"{path}.{name}" if path else name
        before = dependent_before.get(name, [])
        if isinstance(needed, list) and isinstance(before, list):
            more = sorted(set(needed) - set(before))
            if more:
                yield _at(place, f"needs {', '.join(more)} beside it, and did not before")
        elif needed != before:
            yield _at(place, "needs other things beside it than before")


def _dependent(node: Mapping[str, Node]) -> NodeObject:
    return {**node.get("dependencies", {}), **node.get("dependentRequired", {})}


def _description(node: Mapping[str, object]) -> str:
    types = _types(node)
    return "any value" if types == _ALL_TYPES else " or ".join(sorted(types))


def _short(value: object) -> str:
    return "not set" if value is None else _key(value)[:60]


def _at(path: str, reason: str) -> Incompatibility:
    return Incompatibility(path.lstrip(".") or "(root)", reason)

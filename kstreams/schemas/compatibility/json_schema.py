"""Compatibility of JSON Schemas: whether every document of the writer's schema is valid by the reader's schema.

The rules are those of Confluent. If the writer's schema is open (`additionalProperties`), documents may have further
properties with any value, so the reader's schema must not restrict those. A new required property needs a default.
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
_UPPER_LIMITS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER_LIMITS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_COMPARED_AS_A_WHOLE = (
    "if",
    "then",
    "else",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
    "dependentSchemas",
)
_TYPES_OF_KEYWORD = {
    **dict.fromkeys(
        ("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "multipleOf"), ("number", "integer")
    ),
    **dict.fromkeys(("maxLength", "minLength", "pattern"), ("string",)),
    **dict.fromkeys(("maxItems", "minItems", "uniqueItems", "contains", "unevaluatedItems"), ("array",)),
    **dict.fromkeys(("maxProperties", "minProperties", "unevaluatedProperties", "dependentSchemas"), ("object",)),
}


def incompatibilities(reader: ResolvedSchema, writer: ResolvedSchema) -> list[Incompatibility]:
    """Return the reasons why documents of the writer's schema are not all valid by the reader's schema."""
    return list(_JsonSchemaComparison(JsonDocument(reader), JsonDocument(writer)).compare_roots())


class JsonDocument:
    """A JSON Schema with the schemas that it refers to.

    Parameters
    ----------
    schema : ResolvedSchema

    Raises
    ------
    RegistryError
        If a text is not a JSON Schema.
    """

    def __init__(self, schema: ResolvedSchema) -> None:
        self.root = _parse(schema.text)
        self._imports = {name: _parse(text) for name, text in schema.imports}

    def follow_references(self, node: Node) -> Node:
        """Return the target of a `$ref`, merged with the keywords beside the `$ref`. Return other nodes unchanged."""
        visited: list[str] = []
        while isinstance(node, dict) and "$ref" in node:
            reference = str(node["$ref"])
            if reference in visited:
                raise RegistryError(f"this is no JSON Schema: {reference} refers to itself")
            visited.append(reference)
            target = self._target(reference)
            node = {**target, **_without(node, "$ref")} if isinstance(target, dict) else target
        return node

    def _target(self, reference: str) -> Node:
        name, _, pointer = reference.partition("#")
        node = self._imports.get(name, self.root) if name else self.root
        if name and name not in self._imports and self.root_id != name:
            raise RegistryError(
                f"this JSON Schema refers to {reference}, which is none of its references: add a reference "
                f"with the name {name}"
            )
        for part in filter(None, pointer.split("/")):
            node = _child(node, part.replace("~1", "/").replace("~0", "~"), reference)
        return node

    @property
    def root_id(self) -> str:
        """The `$id` of the schema. Empty if the schema has none."""
        return str(self.root.get("$id", "")) if isinstance(self.root, dict) else ""


def _child(node: Node, key: str, reference: str) -> Node:
    """Return the item of a list or the property of an object that a part of a JSON pointer names."""
    try:
        return node[int(key)] if isinstance(node, list) else node[key]
    except (KeyError, IndexError, ValueError, TypeError):
        raise RegistryError(f"this is no JSON Schema: {reference} refers to a part that does not exist") from None


def _parse(text: str) -> Node:
    try:
        node = json.loads(text)
        validator_for(node, default=Draft7Validator).check_schema(node)
    except (ValueError, RecursionError) as error:
        raise RegistryError(f"this is no JSON Schema: {error}") from None
    except SchemaError as error:
        raise RegistryError(f"this is no JSON Schema: {error.message}") from None
    return node


class _JsonSchemaComparison:
    """The comparison of two schemas. It remembers the pairs of nodes that were compared already."""

    def __init__(self, reader: JsonDocument, writer: JsonDocument) -> None:
        self._reader = reader
        self._writer = writer
        self._compared: set[tuple[str, str]] = set()

    def compare_roots(self) -> Incompatibilities:
        """Yield the reasons why the reader's schema refuses documents of the writer's schema."""
        return self.compare("", self._reader.root, self._writer.root)

    def compare(self, path: str, read: Node, written: Node) -> Incompatibilities:
        """Yield the reasons why the reader's node refuses values of the writer's node."""
        pair = (_as_key(read), _as_key(written))
        if pair in self._compared:
            return
        self._compared.add(pair)
        read = self._reader.follow_references(read)
        written = self._writer.follow_references(written)
        if written is False or read is True or read == {}:
            return
        if read is False:
            yield _incompatibility(path, "may be there, and is not read any more")
            return
        yield from self._compare_objects(path, read, {} if written is True else written)

    def _compare_objects(self, path: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
        for keyword in ("oneOf", "anyOf"):
            if keyword in written:
                other_keywords = _without(written, keyword)
                for alternative in written[keyword]:
                    yield from self.compare(
                        path, read, _conjunction(other_keywords, self._writer.follow_references(alternative))
                    )
                return
        if "allOf" in written:
            yield from self._compare_all_of(path, read, written)
            return
        for keyword in ("oneOf", "anyOf"):
            if keyword in read:
                yield from self._compare_alternatives(path, keyword, read, written)
                read = _without(read, keyword)
        for alternative in read.get("allOf", ()):
            yield from self.compare(path, alternative, written)
        yield from self._compare_keywords(path, read, written)

    def _compare_all_of(self, path: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
        """Compare with the conjunction of all parts of `allOf`, since the writer's documents are valid by each part."""
        conjunction = _without(written, "allOf")
        for part in written["allOf"]:
            conjunction = _conjunction(conjunction, self._writer.follow_references(part))
        yield from self.compare(path, read, conjunction)

    def _compare_alternatives(
        self, path: str, keyword: str, read: NodeObject, written: NodeObject
    ) -> Incompatibilities:
        compared_before = set(self._compared)
        for alternative in read[keyword]:
            if next(self.compare(path, alternative, written), None) is None:
                return
            self._compared = set(compared_before)
        yield _incompatibility(
            path, f"{_description(written)} is read as none of the {len(read[keyword])} schemas of {keyword}"
        )

    def _compare_keywords(self, path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
        lost = _lost_types(read, written)
        if lost:
            yield _incompatibility(path, f"may be {' or '.join(lost)}, which is not read any more")
            return
        yield from _compare_values(path, read, written)
        types = _types(written)
        for keyword in read:
            restricted_types = _TYPES_OF_KEYWORD.get(keyword)
            check = _CHECKS.get(keyword)
            if check is not None and (restricted_types is None or types & set(restricted_types)):
                yield from check(path, keyword, read, written)
        yield from self._compare_negation(path, read, written)
        if "object" in types:
            yield from self._compare_properties(path, read, written)
        if "array" in types:
            yield from self._compare_items(path, read, written)

    def _compare_negation(self, path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
        if "not" not in read:
            return
        swapped = _JsonSchemaComparison(self._writer, self._reader)
        if "not" not in written or next(swapped.compare(path, written["not"], read["not"]), None) is not None:
            yield _incompatibility(path, "`not` excludes what was valid before")

    def _compare_properties(self, path: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
        for name in sorted(read.get("properties", {}).keys() | written.get("properties", {}).keys()):
            for subschema in _schemas_of_property(read, name):
                yield from self.compare(_property_path(path, name), subschema, _schemas_of_property(written, name)[0])
        for pattern in sorted(read.get("patternProperties", {}).keys() | written.get("patternProperties", {}).keys()):
            yield from self.compare(
                f"{path}.{{{pattern}}}", _schema_of_pattern(read, pattern), _schema_of_pattern(written, pattern)
            )
        yield from self.compare(
            f"{path}.*", read.get("additionalProperties", True), written.get("additionalProperties", True)
        )
        if "propertyNames" in read:
            yield from self.compare(f"{path}.(names)", read["propertyNames"], written.get("propertyNames", True))
        for name in sorted(set(read.get("required", ())) - set(written.get("required", ()))):
            schema = self._reader.follow_references(_schemas_of_property(read, name)[0])
            if not (isinstance(schema, dict) and "default" in schema):
                yield _incompatibility(_property_path(path, name), "is required, was not, and has no default")
        yield from _compare_dependencies(path, read, written)

    def _compare_items(self, path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
        first_read, rest_read = _schemas_of_items(read)
        first_written, rest_written = _schemas_of_items(written)
        for index in range(max(len(first_read), len(first_written))):
            read_schema = first_read[index] if index < len(first_read) else rest_read
            written_schema = first_written[index] if index < len(first_written) else rest_written
            yield from self.compare(f"{path}[{index}]", read_schema, written_schema)
        yield from self.compare(f"{path}[]", rest_read, rest_written)


def _as_key(node: Node) -> str:
    return json.dumps(node, sort_keys=True)


def _without(node: dict[str, object], keyword: str) -> dict[str, object]:
    return {key: value for key, value in node.items() if key != keyword}


def _conjunction(schema: NodeObject, other: Node) -> Node:
    """Return a schema of the values that are valid by both. The first schema has priority if both have a keyword."""
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
        values = _listed_values(node)
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
    """Return the types of written values that the reader refuses. Every integer is a number."""
    types = _types(read)
    readable_types = types | {"integer"} if "number" in types else types
    lost_types = _types(written) - readable_types
    return sorted(lost_types - {"integer"} if "number" in lost_types else lost_types)


def _listed_values(node: Mapping[str, Node]) -> list[Node] | None:
    """Return the values of `enum` or `const`. None if the schema lists no values."""
    return [node["const"]] if "const" in node else node.get("enum")


def _compare_values(path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
    read_values = _listed_values(read)
    written_values = _listed_values(written)
    if read_values is None:
        return
    if written_values is None:
        yield _incompatibility(path, "may be any value, and is read only as one of a few")
        return
    read_keys = {_as_key(value) for value in read_values}
    lost_keys = [_as_key(value) for value in written_values if _as_key(value) not in read_keys]
    if lost_keys:
        yield _incompatibility(path, f"may be {', '.join(lost_keys)}, which is not read any more")


def _check_upper_limit(path: str, keyword: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
    if written.get(keyword) is None or written[keyword] > read[keyword]:
        yield _incompatibility(path, f"{keyword} was {written.get(keyword, 'not set')} and is {read[keyword]}")


def _check_lower_limit(path: str, keyword: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
    if written.get(keyword, 0 if keyword.startswith("min") and keyword != "minimum" else None) is None:
        yield _incompatibility(path, f"{keyword} was not set and is {read[keyword]}")
    elif written.get(keyword, 0) < read[keyword]:
        yield _incompatibility(path, f"{keyword} was {written.get(keyword, 'not set')} and is {read[keyword]}")


def _check_multiple(path: str, keyword: str, read: NodeObject, written: NodeObject) -> Incompatibilities:
    if written.get(keyword) is None or written[keyword] % read[keyword] != 0:
        yield _incompatibility(path, f"{keyword} was {written.get(keyword, 'not set')} and is {read[keyword]}")


def _check_unique_items(
    path: str, keyword: str, read: dict[str, object], written: dict[str, object]
) -> Incompatibilities:
    if read[keyword] and not written.get(keyword):
        yield _incompatibility(path, "may hold an item twice, which is not read any more")


def _check_equal(path: str, keyword: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
    if read[keyword] != written.get(keyword):
        yield _incompatibility(
            path, f"{keyword} was {_short_text(written.get(keyword))} and is {_short_text(read[keyword])}"
        )


_CHECKS: dict[str, Callable[[str, str, NodeObject, NodeObject], Incompatibilities]] = {
    **dict.fromkeys(_UPPER_LIMITS, _check_upper_limit),
    **dict.fromkeys(_LOWER_LIMITS, _check_lower_limit),
    **dict.fromkeys(_COMPARED_AS_A_WHOLE, _check_equal),
    "multipleOf": _check_multiple,
    "uniqueItems": _check_unique_items,
    "pattern": _check_equal,
}


def _schemas_of_property(node: Mapping[str, Node], name: str) -> list[Node]:
    """Return the schemas that apply to a property.

    They are its own schema and those of matching patterns, or else the schema of additional properties.
    """
    own = [node["properties"][name]] if name in node.get("properties", {}) else []
    of_patterns = [schema for pattern, schema in node.get("patternProperties", {}).items() if re.search(pattern, name)]
    return [*own, *of_patterns] or [node.get("additionalProperties", True)]


def _schema_of_pattern(node: Mapping[str, Node], pattern: str) -> Node:
    return node.get("patternProperties", {}).get(pattern, node.get("additionalProperties", True))


def _schemas_of_items(node: Mapping[str, Node]) -> tuple[Sequence[Node], Node]:
    """Return the schemas of the first items of an array, and the schema of all further items.

    Drafts before 2020-12 write the first items as a list in `items`, later drafts in `prefixItems`.
    """
    items = node.get("items", True)
    if isinstance(items, list):
        return items, node.get("additionalItems", True)
    return node.get("prefixItems", ()), items


def _compare_dependencies(path: str, read: dict[str, object], written: dict[str, object]) -> Incompatibilities:
    written_dependencies = _dependencies_of(written)
    for name, needed in sorted(_dependencies_of(read).items()):
        property_path = _property_path(path, name)
        needed_before = written_dependencies.get(name, [])
        if isinstance(needed, list) and isinstance(needed_before, list):
            new_names = sorted(set(needed) - set(needed_before))
            if new_names:
                yield _incompatibility(property_path, f"needs {', '.join(new_names)} beside it, and did not before")
        elif needed != needed_before:
            yield _incompatibility(property_path, "needs other properties beside it than before")


def _dependencies_of(node: Mapping[str, Node]) -> NodeObject:
    """Return the names or schemas that a property requires in its object, by the name of the property."""
    return {**node.get("dependencies", {}), **node.get("dependentRequired", {})}


def _description(node: Mapping[str, object]) -> str:
    types = _types(node)
    return "any value" if types == _ALL_TYPES else " or ".join(sorted(types))


def _property_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _short_text(value: object) -> str:
    return "not set" if value is None else _as_key(value)[:60]


def _incompatibility(path: str, reason: str) -> Incompatibility:
    return Incompatibility(path.lstrip(".") or "(root)", reason)

"""Canonical texts of schemas. Equivalent schemas have the same canonical text, and so the same id and GUID.

The canonical text leaves out layout: white space, the order of attributes of an Avro type, and comments in a `.proto`
file. With `normalize`, it also leaves out the order of attributes in a JSON Schema and redundant namespaces in Avro.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from kstreams.errors import RegistryError
from kstreams.schemas.registry import Schema
from kstreams.schemas.serialized_proto import is_serialized

_TYPE_NAMES = {"AVRO": "Avro schema", "JSON": "JSON Schema", "PROTOBUF": "Protobuf schema"}
_GUID_NAMESPACE = uuid.UUID("e6d1a2f7-5f0e-4f53-9a35-5c1b7a3f7b0d")
_TYPE_ATTRIBUTE_ORDER = ("type", "name", "namespace", "doc", "fields", "symbols", "items", "values", "size", "default")
_FIELD_ATTRIBUTE_ORDER = ("name", "type", "doc", "default", "order")
_PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_WITH_TYPES = ("type", "fields", "items", "values")
"""The attributes of an Avro type that contain other types."""
_PROTO_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/|[\w.]+|[^\s\w]""", re.DOTALL
)


def canonical(schema: Schema, *, normalize: bool = False) -> Schema:
    """Return the canonical form of a schema.

    Raises
    ------
    RegistryError
        If an Avro or JSON schema is not JSON.

    Examples
    --------
    >>> canonical(Schema('{ "name": "Order", "type": "record", "fields": [] }')).text
    '{"type":"record","name":"Order","fields":[]}'
    >>> canonical(Schema("message Order { } // empty", "PROTOBUF")).text
    'message Order { }'
    """
    references = (
        tuple(sorted(schema.references, key=lambda reference: reference.name)) if normalize else schema.references
    )
    try:
        text = _CANONICAL_TEXT_OF[schema.type](schema.text, normalize)
        text.encode()
    except (RecursionError, UnicodeEncodeError) as error:
        raise RegistryError(f"this is no {_TYPE_NAMES[schema.type]}: {error}") from None
    return Schema(text, schema.type, references)


def guid_of(schema: Schema) -> str:
    """Return the GUID of a canonical schema: the same one in every embedded registry.

    Examples
    --------
    >>> guid_of(Schema('"string"'))
    '3f642d5e-3233-5575-aa43-cba192d60b61'
    """
    references = [[reference.name, reference.subject, reference.version] for reference in schema.references]
    content = json.dumps([schema.type, schema.text, references])
    return str(uuid.uuid5(_GUID_NAMESPACE, content))


def _canonical_avro(text: str, normalize: bool) -> str:
    node = _parse_json(text, "AVRO")
    return _to_json(_qualify_names(node, "") if normalize else _sort_attributes(node), sort=normalize)


def _canonical_json(text: str, normalize: bool) -> str:
    return _to_json(_parse_json(text, "JSON"), sort=normalize)


def _canonical_protobuf(text: str, normalize: bool) -> str:
    return text if is_serialized(text) else " ".join(_proto_tokens(text))


def _proto_tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a `.proto` text without comments."""
    for token in _PROTO_TOKEN.finditer(text):
        if not token[0].startswith(("//", "/*")):
            yield token[0]


def _parse_json(text: str, schema_type: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise RegistryError(f"this is no {_TYPE_NAMES[schema_type]}: {error}") from None


def _to_json(node: object, *, sort: bool) -> str:
    return json.dumps(node, sort_keys=sort, separators=(",", ":"), ensure_ascii=False)


def _sort_attributes(node: object, order: tuple[str, ...] = _TYPE_ATTRIBUTE_ORDER) -> object:
    """Sort the attributes of an Avro schema in Avro's order, and unwrap primitive types."""
    if isinstance(node, list):
        return [_sort_attributes(item, order) for item in node]
    if not isinstance(node, dict):
        return node
    if node.keys() == {"type"} and node["type"] in _PRIMITIVES:
        return node["type"]
    known_names = [name for name in order if name in node]
    other_names = sorted(name for name in node if name not in known_names)
    return {name: _sort_inside(name, node[name]) for name in (*known_names, *other_names)}


def _sort_inside(attribute: str, value: object) -> object:
    """Sort the attributes of the types inside one attribute."""
    if attribute == "fields":
        return _sort_attributes(value, _FIELD_ATTRIBUTE_ORDER)
    return _sort_attributes(value) if attribute in _WITH_TYPES else value


def _qualify_names(node: object, namespace: str) -> object:
    """Qualify every name of an Avro schema, and remove the attribute `namespace`."""
    if isinstance(node, list):
        return [_qualify_names(item, namespace) for item in node]
    if isinstance(node, str):
        return node if node in _PRIMITIVES or "." in node or not namespace else f"{namespace}.{node}"
    if not isinstance(node, dict):
        return node
    if node.keys() == {"type"} and node["type"] in _PRIMITIVES:
        return node["type"]
    if node.get("type") in ("record", "error", "enum", "fixed"):
        return _qualify_definition(node, namespace)
    return {name: _qualify_names(value, namespace) if name in _WITH_TYPES else value for name, value in node.items()}


def _qualify_definition(node: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Qualify the definition of a named type and the names inside it."""
    name = str(node.get("name", ""))
    own_namespace = name.rpartition(".")[0] if "." in name else node.get("namespace", namespace)
    full_name = name if "." in name or not own_namespace else f"{own_namespace}.{name}"
    other_attributes = {key: value for key, value in node.items() if key not in ("name", "namespace", "fields")}
    fields = {"fields": [_qualify_field(field, own_namespace) for field in node["fields"]]} if "fields" in node else {}
    return {**other_attributes, "name": full_name, **fields}


def _qualify_field(field: object, namespace: str) -> object:
    if not isinstance(field, dict):
        return field
    return {name: _qualify_names(value, namespace) if name == "type" else value for name, value in field.items()}


_CANONICAL_TEXT_OF: dict[str, Callable[[str, bool], str]] = {
    "AVRO": _canonical_avro,
    "JSON": _canonical_json,
    "PROTOBUF": _canonical_protobuf,
}

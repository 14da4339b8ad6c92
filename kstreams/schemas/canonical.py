"""Canonical texts of schemas: equivalent texts have the same canonical text, and so the same id and GUID.

The canonical text ignores layout: white space, the order of attributes of an Avro type, and comments in a `.proto`
file. With `normalize`, it also ignores the order of attributes in a JSON Schema, and redundant namespaces in Avro.
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

_NAMES = {"AVRO": "Avro schema", "JSON": "JSON Schema", "PROTOBUF": "Protobuf schema"}
_NAMESPACE = uuid.UUID("e6d1a2f7-5f0e-4f53-9a35-5c1b7a3f7b0d")
_TYPE_ORDER = ("type", "name", "namespace", "doc", "fields", "symbols", "items", "values", "size", "default")
_FIELD_ORDER = ("name", "type", "doc", "default", "order")
_PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
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
        text = _FORMS[schema.type](schema.text, normalize)
        text.encode()
    except (RecursionError, UnicodeEncodeError) as error:
        raise RegistryError(f"this is no {_NAMES[schema.type]}: {error}") from None
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
    return str(uuid.uuid5(_NAMESPACE, content))


def _avro(text: str, normalize: bool) -> str:
    node = _read(text, "AVRO")
    return _written(_named_fully(node, "") if normalize else _ordered(node), sort=normalize)


def _json(text: str, normalize: bool) -> str:
    return _written(_read(text, "JSON"), sort=normalize)


def _protobuf(text: str, normalize: bool) -> str:
    return text if is_serialized(text) else " ".join(_tokens(text))


def _tokens(text: str) -> Iterator[str]:
    for token in _PROTO_TOKEN.finditer(text):
        if not token[0].startswith(("//", "/*")):
            yield token[0]


def _read(text: str, kind: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise RegistryError(f"this is no {_NAMES[kind]}: {error}") from None


def _written(node: object, *, sort: bool) -> str:
    return json.dumps(node, sort_keys=sort, separators=(",", ":"), ensure_ascii=False)


def _ordered(node: object, order: tuple[str, ...] = _TYPE_ORDER) -> object:
    """Sort the attributes of an Avro schema in Avro's order, and unwrap primitive types."""
    if isinstance(node, list):
        return [_ordered(item, order) for item in node]
    if not isinstance(node, dict):
        return node
    if node.keys() == {"type"} and node["type"] in _PRIMITIVES:
        return node["type"]
    first = [name for name in order if name in node]
    names = [*first, *sorted(name for name in node if name not in first)]
    return {name: _part(name, node[name]) for name in names}


def _part(attribute: str, value: object) -> object:
    if attribute == "fields":
        return _ordered(value, _FIELD_ORDER)
    return _ordered(value) if attribute in _WITH_TYPES else value


_WITH_TYPES = ("type", "fields", "items", "values")


def _named_fully(node: object, namespace: str) -> object:
    """Qualify every name of an Avro schema, and remove the attribute `namespace`."""
    if isinstance(node, list):
        return [_named_fully(item, namespace) for item in node]
    if isinstance(node, str):
        return node if node in _PRIMITIVES or "." in node or not namespace else f"{namespace}.{node}"
    if not isinstance(node, dict):
        return node
    if node.keys() == {"type"} and node["type"] in _PRIMITIVES:
        return node["type"]
    if node.get("type") in ("record", "error", "enum", "fixed"):
        return _definition(node, namespace)
    return {name: _named_fully(value, namespace) if name in _WITH_TYPES else value for name, value in node.items()}


def _definition(node: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Qualify the definition of a named type and the names inside it."""
    name = str(node.get("name", ""))
    own = name.rpartition(".")[0] if "." in name else node.get("namespace", namespace)
    full = name if "." in name or not own else f"{own}.{name}"
    other_attributes = {key: value for key, value in node.items() if key not in ("name", "namespace", "fields")}
    fields = {"fields": [_field(field, own) for field in node["fields"]]} if "fields" in node else {}
    return {**other_attributes, "name": full, **fields}


def _field(field: object, namespace: str) -> Any:
    if not isinstance(field, dict):
        return field
    return {name: _named_fully(value, namespace) if name == "type" else value for name, value in field.items()}


_FORMS: dict[str, Callable[[str, bool], str]] = {"AVRO": _avro, "JSON": _json, "PROTOBUF": _protobuf}

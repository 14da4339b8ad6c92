"""`AvroSchema`: an Avro schema that fastavro has parsed, with its named types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kstreams.errors import ConfigError, SerdeError
from kstreams.schemas import Schema, SchemaRegistry
from kstreams.schemas.compatibility.rules import resolved_by

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
COMPLEX: Final = frozenset({"record", "error", "enum", "fixed", "array", "map"})
RECORDS: Final = frozenset({"record", "error"})
NAMED: Final = RECORDS | {"enum", "fixed"}

SchemaNode: TypeAlias = Any
"""A part of a schema in JSON: the name of a type, a list of the branches of a union, or a dict with a `type`."""


@dataclass(frozen=True, eq=False)
class AvroSchema:
    """A schema whose names are full names.

    Parameters
    ----------
    root : object
        The name of a type, a dict with a `type`, or a list of the branches of a union.
    names : mapping of str to dict
        The named types by their full names.
    """

    root: SchemaNode
    names: Mapping[str, dict[str, SchemaNode]]

    def node(self, part: SchemaNode) -> SchemaNode:
        """Resolve a part of the schema.

        Returns
        -------
        dict or list
            A dict whose `type` is a primitive or complex type, or the list of the branches of a union.
        """
        while not isinstance(part, list):
            if isinstance(part, str):
                part = {"type": part} if part in PRIMITIVES else self.names[part]
            kind = part["type"]
            if isinstance(kind, str) and (kind in PRIMITIVES or kind in COMPLEX):
                return part
            part = kind
        return part


def parsed(text: str, referenced: Iterable[str] = ()) -> AvroSchema:
    """Parse a schema.

    Parameters
    ----------
    text : str
        JSON, or the name of a primitive type.
    referenced : iterable of str
        The texts of referenced schemas, each before the schemas that refer to it.

    Raises
    ------
    SerdeError
        If a text is not an Avro schema. The message has the reason.
    """
    fastavro = require_fastavro()
    names: dict[str, SchemaNode] = {}
    try:
        for referenced_text in referenced:
            fastavro.parse_schema(_schema_json(referenced_text), named_schemas=names)
        return AvroSchema(fastavro.parse_schema(_schema_json(text), named_schemas=names), names)
    except Exception as error:
        raise SerdeError(f"{text if len(text) < 200 else text[:199] + '…'} is no schema of Avro: {error}") from error


def loaded(schema: Schema, registry: SchemaRegistry) -> AvroSchema:
    """Parse a schema of a registry, and the schemas of other subjects that it refers to."""
    resolved = resolved_by(registry, schema)
    return parsed(resolved.text, [text for _, text in resolved.imports])


def short_name(full_name: str) -> str:
    """Return the name of a type without its namespace."""
    return full_name.rpartition(".")[2]


def _schema_json(text: str) -> SchemaNode:
    return text if text in PRIMITIVES else json.loads(text)


def require_fastavro() -> Any:
    """Import fastavro. Raises ConfigError if it is not installed."""
    try:
        import fastavro
    except ModuleNotFoundError:
        raise ConfigError(
            "ks.Avro needs fastavro, which is not installed: install it with `pip install 'kstreams-dsl[registry]'`"
        ) from None
    return fastavro

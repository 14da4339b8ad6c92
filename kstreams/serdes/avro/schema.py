"""`AvroSchema`: a schema of Avro as parsed by fastavro, with the named types within it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kstreams.errors import ConfigError, SerdeError
from kstreams.schemas import Schema, SchemaRegistry
from kstreams.schemas.compatibility.rules import resolved_by

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
COMPLEX: Final = frozenset({"record", "error", "enum", "fixed", "array", "map"})
RECORDS: Final = frozenset({"record", "error"})
NAMED: Final = RECORDS | {"enum", "fixed"}


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


def loaded(schema: Schema, registry: SchemaRegistry) -> AvroSchema:
    """A schema of a registry, with those of other subjects that it names."""
    resolved = resolved_by(registry, schema)
    return parsed(resolved.text, [text for _, text in resolved.imports])


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

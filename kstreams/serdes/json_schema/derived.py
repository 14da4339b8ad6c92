"""`derived_schema`: the JSON Schema of a class, by msgspec or, for pydantic models, by pydantic."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from kstreams.decoders import type_info
from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde
from kstreams.serdes.pydantic_models import PydanticSerde

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS = "#/$defs/"


def derived_schema(serde: Serde[Any]) -> dict[str, Any]:
    """The schema of what a JSON serde writes, with the class's name as its title.

    Parameters
    ----------
    serde : Serde
        Of the class.

    Raises
    ------
    SerdeError
        When a type within the class has no JSON Schema.

    Examples
    --------
    >>> from kstreams.serdes import JsonSerde
    >>> class Order(msgspec.Struct):
    ...     id: int
    >>> derived_schema(JsonSerde(Order))["properties"]
    {'id': {'type': 'integer'}}
    """
    if isinstance(serde, PydanticSerde):
        schema = sys.modules["pydantic"].TypeAdapter(serde.type).json_schema()
    else:
        schema = _of_msgspec(serde.type)
    title = getattr(serde.type, "__name__", None)
    named = {"title": title, **schema} if title else schema
    return {"$schema": _DIALECT, **named}


def _of_msgspec(kind: Any) -> dict[str, Any]:
    """The schema of a class with its own fields at the top, where msgspec refers to a definition of it."""
    type_info(kind)  # takes the type in, one thread at a time
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise SerdeError(f"{kind!r} has no JSON Schema: {error}") from error
    definitions: dict[str, Any] = schema.get("$defs", {})
    name = schema.get("$ref", "").removeprefix(_DEFINITIONS)
    if name not in definitions:
        return schema
    others = {other: definition for other, definition in definitions.items() if other != name}
    is_recursive = f'"{_DEFINITIONS}{name}"'.encode() in msgspec.json.encode(definitions)
    needed = definitions if is_recursive else others
    return {**definitions[name], **({"$defs": needed} if needed else {})}

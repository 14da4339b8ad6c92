"""`ConnectSchema`: a schema of Kafka Connect, in the form that JsonConverter writes before a payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import decode_json

INTEGER_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
SCALAR_CLASSES: Final[dict[str, type]] = {
    **dict.fromkeys(INTEGER_BITS, int),
    "float": float,
    "double": float,
    "boolean": bool,
    "string": str,
    "bytes": bytes,
}
"""The Python class of the values of each scalar type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectSchema:
    """A schema. Kafka Connect: `org.apache.kafka.connect.data.Schema`.

    Parameters
    ----------
    type : str
        A scalar type (`int8`, `int16`, `int32`, `int64`, `float`, `double`, `boolean`, `string`, `bytes`), or
        `array`, `map` or `struct`.
    optional : bool
    name : str
        The name of a struct, or of a logical type. Empty without a name.
    parameters : mapping of str to str
    fields : mapping of str to ConnectSchema
        The fields of a struct.
    parts : tuple of ConnectSchema
        The items of an array; the keys and the values of a map.
    """

    type: str
    optional: bool = False
    name: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, ConnectSchema] = field(default_factory=dict)
    parts: tuple[ConnectSchema, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the schema as JsonConverter writes it.

        Examples
        --------
        >>> ConnectSchema(type="int32").to_json()
        {'type': 'int32', 'optional': False}
        """
        node: dict[str, object] = {"type": self.type}
        if self.type == "struct":
            node["fields"] = [{**schema.to_json(), "field": name} for name, schema in self.fields.items()]
        node |= zip(_PARTS.get(self.type, ()), (part.to_json() for part in self.parts), strict=True)
        node["optional"] = self.optional
        if self.name:
            node["name"] = self.name
            node |= {"version": 1} if self.type != "struct" else {}
        if self.parameters:
            node["parameters"] = dict(self.parameters)
        return node

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else self.type


_PARTS = {"array": ("items",), "map": ("keys", "values")}


def parsed_schema(text: bytes | str) -> ConnectSchema:
    """Parse the JSON of a schema.

    Raises
    ------
    SerdeError
        If the text is no schema of Kafka Connect.

    Examples
    --------
    >>> parsed_schema('{"type": "array", "items": {"type": "string"}}').parts[0].type
    'string'
    """
    try:
        return schema_of(decode_json(text))
    except msgspec.DecodeError as error:
        raise SerdeError(f"the schema is no JSON: {error}") from error


def schema_of(node: Any) -> ConnectSchema:
    """Return the schema of a JSON object. Raises SerdeError if the object is no schema of Kafka Connect."""
    kind = node.get("type") if isinstance(node, Mapping) else None
    if kind not in SCALAR_CLASSES and kind not in ("array", "map", "struct"):
        raise SerdeError(f"{str(node)[:80]} is no schema of Kafka Connect: it has no known type")
    try:
        return ConnectSchema(
            type=kind,
            optional=bool(node.get("optional", False)),
            name=node.get("name") or "",
            parameters=node.get("parameters") or {},
            fields={part["field"]: schema_of(part) for part in node["fields"]} if kind == "struct" else {},
            parts=tuple(schema_of(node[part]) for part in _PARTS.get(kind, ())),
        )
    except (KeyError, TypeError) as error:
        raise SerdeError(f"{str(node)[:80]} is no schema of Kafka Connect: it lacks {error}") from error

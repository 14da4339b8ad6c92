"""`derived_schema`: derives an Avro schema from a Python class."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import re
import uuid
from collections.abc import Callable
from typing import Final, Literal, Union

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import MISSING, Kind, RecordField, RecordShape, kind_of
from kstreams.serdes.avro.logical import AvroDuration
from kstreams.serdes.avro.mapping import COLLECTIONS
from kstreams.serdes.avro.schema import SchemaNode

_PRECISION = 38
_SCALE = 9
"""The precision and scale of decimals without `msgspec.Meta(extra={"precision": ..., "scale": ...})`."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_LEAVES: Final[dict[object, SchemaNode]] = {
    type(None): "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    dt.date: {"type": "int", "logicalType": "date"},
    dt.time: {"type": "long", "logicalType": "time-micros"},
    uuid.UUID: {"type": "string", "logicalType": "uuid"},
}


def derived_schema(hint: object, name: str = "") -> str:
    """Return the schema of a type as JSON.

    Parameters
    ----------
    hint : type
        A dataclass, Struct, TypedDict, named tuple or pydantic model, or the type of a field.
    name : str
        The name of the record with its namespace. Default: the name of the class.

    Raises
    ------
    SerdeError
        If a part of the type has no counterpart in Avro. The message names the field.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     id: int
    ...     note: str | None = None
    >>> derived_schema(Order)  # doctest: +NORMALIZE_WHITESPACE
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},
      {"name": "note", "type": ["null", "string"], "default": null}]}'
    """
    return json.dumps(_Derivation(name).of(kind_of(hint), ""))


class _Derivation:
    """The derivation of one schema. The schema defines each named type once, and then refers to it by name."""

    def __init__(self, name: str) -> None:
        self._root_name = name
        self._class_of_name: dict[str, object] = {}
        self._defined_names: set[str] = set()

    def of(self, kind: Kind, path: str) -> SchemaNode:
        """Return the schema of a part. `path` names the field in errors."""
        if kind.base in (dt.datetime, decimal.Decimal, dt.timedelta, AvroDuration):
            return self._logical_type(kind, path)
        if kind.base in _LEAVES:
            leaf = _LEAVES[kind.base]
            return dict(leaf) if isinstance(leaf, dict) else leaf
        if kind.base in COLLECTIONS and kind.arguments:
            return {"type": "array", "items": self.of(kind.arguments[0], path)}
        derive = self._derivation_of(kind)
        if derive is None:
            prefix = f"field {path}: " if path else ""
            raise SerdeError(
                f"{prefix}{kind} has no counterpart in Avro: declare a class, a list or dict of a type, or pass a "
                "schema, as in ks.Avro('order.avsc')"
            )
        return derive(kind, path)

    def _derivation_of(self, kind: Kind) -> Callable[[Kind, str], SchemaNode] | None:
        if kind.base is Union:
            return self._union
        if kind.base is Literal:
            return self._literal
        if kind.base is dict and len(kind.arguments) == 2:
            return self._map
        if kind.is_enum:
            return self._enum
        return self._record if kind.shape is not None else None

    def _logical_type(self, kind: Kind, path: str) -> SchemaNode:
        if kind.base is dt.datetime:
            name = "local-timestamp-micros" if kind.is_naive else "timestamp-micros"
            return {"type": "long", "logicalType": kind.extra.get("logicalType", name)}
        if kind.base is decimal.Decimal:
            precision = kind.extra.get("precision", _PRECISION)
            scale = kind.extra.get("scale", _SCALE)
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        duration = {"type": "fixed", "name": "Duration", "size": 12, "logicalType": "duration"}
        return self._define_once("Duration", Kind(AvroDuration, AvroDuration), lambda: duration)

    def _union(self, kind: Kind, path: str) -> SchemaNode:
        """Return a union with null first, since the default of most optional fields is None."""
        members = sorted(kind.arguments, key=lambda member: member.base is not type(None))
        branches = []
        for member in members:
            branch = self.of(member, path)
            branches += branch if isinstance(branch, list) else [branch]
        return branches

    def _literal(self, kind: Kind, path: str) -> SchemaNode:
        classes = {type(value) for value in kind.hint.__args__} if hasattr(kind.hint, "__args__") else set()
        if classes in ({str}, {int}):
            return _LEAVES[classes.pop()]
        raise SerdeError(
            f"field {path}: {kind} has no counterpart in Avro: use literals that are all strings or all integers"
        )

    def _map(self, kind: Kind, path: str) -> SchemaNode:
        key, value = kind.arguments
        if key.base is not str:
            raise SerdeError(f"field {path}: {kind} has no counterpart in Avro: the keys of its maps are strings")
        return {"type": "map", "values": self.of(value, path)}

    def _enum(self, kind: Kind, path: str) -> SchemaNode:
        name = self._type_name(kind)
        return self._define_once(name, kind, lambda: {"type": "enum", "name": name, "symbols": symbols(kind.base)})

    def _record(self, kind: Kind, path: str) -> SchemaNode:
        shape = kind.shape
        if shape is None:
            raise SerdeError(f"field {path}: {kind} has no fields")
        name = self._root_name if self._root_name and not path else self._type_name(kind)
        return self._define_once(name, kind, lambda: self._record_node(name, shape, path))

    def _record_node(self, name: str, shape: RecordShape, path: str) -> SchemaNode:
        record: dict[str, SchemaNode] = {"type": "record", "name": name}
        record["fields"] = [
            self._field(field, f"{path}.{field.name}" if path else field.name) for field in shape.fields.values()
        ]
        return record

    def _field(self, field: RecordField, path: str) -> SchemaNode:
        if not _NAME.fullmatch(field.name):
            raise SerdeError(
                f"field {path}: {field.name!r} is no name in Avro: use letters, digits and _, and begin with no digit"
            )
        field_type = self.of(field.kind, path)
        node: dict[str, SchemaNode] = {"name": field.name, "type": field_type}
        if "aliases" in field.kind.extra:
            node["aliases"] = list(field.kind.extra["aliases"])
        default = _json_default(field.default)
        if default is not MISSING:
            node["type"] = _default_first(field_type, default)
            node["default"] = default
        return node

    def _type_name(self, kind: Kind) -> str:
        name = str(kind.extra.get("name", kind.base.__name__))
        return re.sub(r"[^A-Za-z0-9_]", "_", name)

    def _define_once(self, name: str, kind: Kind, define: Callable[[], SchemaNode]) -> SchemaNode:
        """Return the definition of a named type at its first occurrence, and its name at all others."""
        if self._class_of_name.setdefault(name, kind.base) is not kind.base:
            raise SerdeError(
                f"two classes are called {name}, which an Avro schema cannot hold: rename one of them, as in "
                'Annotated[Card, msgspec.Meta(extra={"name": "ShopCard"})]'
            )
        if name in self._defined_names:
            return name
        self._defined_names.add(name)
        return define()


def symbols(cls: type[enum.Enum]) -> list[str]:
    """Return the symbols of an enum: the values if all of them are valid names, otherwise the names of the members.

    Raises
    ------
    SerdeError
        If the enum has no members.

    Examples
    --------
    >>> import enum
    >>> symbols(enum.Enum("Color", {"RED": "red", "GREEN": "green"})), symbols(enum.Enum("Level", "LOW HIGH"))
    (['red', 'green'], ['LOW', 'HIGH'])
    """
    values = [member.value for member in cls]
    if not values:
        raise SerdeError(f"{cls.__name__} has no members")
    are_names = all(isinstance(value, str) and _NAME.fullmatch(value) for value in values)
    return values if are_names else [member.name for member in cls]


def _json_default(default: object) -> SchemaNode:
    """Return the default of a field in the schema. MISSING if JSON cannot represent the default."""
    if default is None or type(default) in (bool, int, str):
        return default
    if type(default) is float and default - default == 0:
        return default
    return MISSING


def _default_first(field_type: object, default: object) -> SchemaNode:
    """Return a union with the branch of the default first, as Avro requires."""
    if not isinstance(field_type, list) or default is None:
        return field_type
    branch_of_default = {bool: "boolean", int: "long", str: "string", float: "double"}[type(default)]
    return sorted(field_type, key=lambda branch: branch != branch_of_default)

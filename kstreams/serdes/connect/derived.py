"""`derived_schema`: the schema of Kafka Connect for a Python type."""

from __future__ import annotations

import enum
import uuid
from decimal import Decimal
from typing import Any, Literal, Union

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import PLAIN, Kind
from kstreams.serdes.connect.logical import Conventions, FieldSettings, logical_of_class
from kstreams.serdes.connect.schema import SCALAR_CLASSES, ConnectSchema

_SCALARS: dict[object, str] = {int: "int64", float: "double", bool: "boolean", str: "string", bytes: "bytes"}
_COLLECTIONS = (list, tuple, set, frozenset)


def derived_schema(kind: Kind, conventions: Conventions, name: str | None = None, place: str = "") -> ConnectSchema:
    """Return the schema of a type.

    Parameters
    ----------
    kind : Kind
    conventions : Conventions
    name : str, optional
        The name of the struct. Default: the name of the class.
    place : str
        The path of the field, for errors.

    Raises
    ------
    SerdeError
        If the type has no schema.

    Examples
    --------
    >>> from kstreams.serdes.avro.kinds import kind_of
    >>> derived_schema(kind_of(list[int]), Conventions()).to_json()
    {'type': 'array', 'items': {'type': 'int64', 'optional': False}, 'optional': False}
    """
    if kind.base is Union:
        return _optional(kind, conventions, name, place)
    logical = logical_of_class(kind.base, FieldSettings(kind.extra, kind.is_naive), conventions)
    if kind.base is Decimal and "scale" not in kind.extra:
        raise SerdeError(
            f"{_at(place)}a decimal has no schema without its scale: declare the scale, as in "
            'Annotated[Decimal, msgspec.Meta(extra={"scale": 2})]'
        )
    if logical is not None:
        return logical.schema
    if kind.shape is not None:
        fields = {
            field.name: derived_schema(field.kind, conventions, place=f"{place}.{field.name}")
            for field in kind.shape.fields.values()
        }
        return ConnectSchema(type="struct", name=name or str(kind.base.__name__), fields=fields)
    if kind.base in _COLLECTIONS or kind.base is dict:
        arguments = kind.arguments or (PLAIN,)
        parts = tuple(derived_schema(argument, conventions, place=place) for argument in arguments)
        return ConnectSchema(type="map" if kind.base is dict else "array", parts=parts)
    return ConnectSchema(type=_scalar(kind, place))


def _optional(kind: Kind, conventions: Conventions, name: str | None, place: str) -> ConnectSchema:
    members = [member for member in kind.arguments if member.base is not type(None)]
    if len(members) != 1:
        raise _no_schema(kind, place)
    schema = derived_schema(members[0], conventions, name, place)
    return ConnectSchema(
        type=schema.type,
        optional=True,
        name=schema.name,
        parameters=schema.parameters,
        fields=schema.fields,
        parts=schema.parts,
    )


def _scalar(kind: Kind, place: str) -> str:
    declared = kind.extra.get("type")
    if declared is not None:
        if SCALAR_CLASSES.get(declared) is not kind.base:
            raise SerdeError(f"{_at(place)}{declared!r} is no type of Kafka Connect for {kind}")
        return str(declared)
    base = _class_of_values(kind)
    if base not in _SCALARS:
        raise _no_schema(kind, place)
    return _SCALARS[base]


def _class_of_values(kind: Kind) -> object:
    if kind.base is uuid.UUID:
        return str
    if kind.is_enum:
        return _common_class([member.value for member in kind.base])
    if kind.base is Literal:
        return _common_class(getattr(kind.hint, "__args__", ()))
    return kind.base


def _common_class(values: Any) -> object:
    classes = {type(value) for value in values}
    return classes.pop() if len(classes) == 1 else enum.Enum


def _at(place: str) -> str:
    return f"field {place.removeprefix('.')}: " if place else ""


def _no_schema(kind: Kind, place: str) -> SerdeError:
    return SerdeError(
        f"{_at(place)}{kind} has no schema in Kafka Connect: declare a class, a list or dict of one type, or a scalar; "
        "or write without schemas (schemas=False)"
    )

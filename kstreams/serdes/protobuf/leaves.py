"""`Leaf`: conversions between single Protobuf values and Python types, and the members of oneofs."""

from __future__ import annotations

import decimal
import math
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.serdes.protobuf.fields import alternatives, class_of, shape_for, shown
from kstreams.serdes.protobuf.names import snake_case, without_prefix
from kstreams.serdes.protobuf.well_known import (
    read_date,
    read_decimal,
    read_duration,
    read_json,
    read_json_list,
    read_json_object,
    read_time,
    read_timestamp,
    write_date,
    write_decimal,
    write_duration,
    write_json,
    write_json_list,
    write_json_object,
    write_time,
    write_timestamp,
)


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a oneof, and the type of a union that it holds."""

    field: FieldDescriptor
    info: Any
    kind: type


def members(oneof: OneofDescriptor, info: object) -> list[Member]:
    """Return a member for each type of a union: by the name of the class, otherwise the first that fits.

    Raises
    ------
    SerdeError
        If a type has no member.
    """
    free = list(oneof.fields)
    used_members = []
    for member in alternatives(info).types:
        field = _field_for(member, free)
        if field is None:
            raise SerdeError(f"the oneof {oneof.full_name} has no field for {shown(member)}")
        free.remove(field)
        used_members.append(Member(field, member, class_of(member)))
    return used_members


def _field_for(info: object, fields: list[FieldDescriptor]) -> FieldDescriptor | None:
    name = getattr(info, "cls", type(None)).__name__
    for field in fields:
        if field.message_type is not None and field.message_type.name == name:
            return field
    for field in fields:
        if field.name == snake_case(name):
            return field
    return next((field for field in fields if _takes(field, info)), None)


def _takes(field: FieldDescriptor, info: object) -> bool:
    return leaf(field, info) is not None or bool(field.message_type and shape_for(field.message_type, info) is not None)


class Leaf(NamedTuple):
    """The conversions of a value. None means that protobuf takes and returns the Python value itself.

    For a scalar, `write(value)` returns a scalar. For a message, `write(value, message)` fills the message.
    """

    read: Callable[[Any], Any] | None = None
    write: Callable[..., Any] | None = None


_D = FieldDescriptor
_INTS = ("INT32", "INT64", "UINT32", "UINT64", "SINT32", "SINT64", "FIXED32", "FIXED64", "SFIXED32", "SFIXED64")
_SCALARS: dict[int, str] = {
    **{getattr(_D, f"TYPE_{name}"): "int" for name in _INTS},
    _D.TYPE_DOUBLE: "double",
    _D.TYPE_FLOAT: "float",
    _D.TYPE_BOOL: "bool",
    _D.TYPE_STRING: "string",
    _D.TYPE_BYTES: "bytes",
    _D.TYPE_ENUM: "enum",
}

WRAPPERS = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int",
    "google.protobuf.UInt64Value": "int",
    "google.protobuf.Int32Value": "int",
    "google.protobuf.UInt32Value": "int",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
"""Messages with one scalar, which make the scalar optional."""


def kind_of(field: FieldDescriptor) -> str:
    """Return the kind of a field's values: `int`, `double`, ..., or the full name of a message."""
    return _SCALARS.get(field.type) or str(field.message_type.full_name)


def leaf(field: FieldDescriptor, info: object) -> Leaf | None:
    """Return the conversions between single values of a field and a type, or None if the type does not fit.

    Raises
    ------
    SerdeError
        If the enum of the field and that of the type have no value in common.
    """
    kind = kind_of(field)
    if kind in WRAPPERS:
        return _wrapped(_plain_leaf(WRAPPERS[kind], info))
    if kind == "enum":
        of_enum = _OF_ENUMS.get(type(info))
        return of_enum(field.enum_type, info) if of_enum else None
    return _plain_leaf(kind, info)


def _plain_leaf(kind: str, info: object) -> Leaf | None:
    if isinstance(info, inspect.LiteralType):
        return _one_of(info.values) if kind == _KIND_OF_LITERAL.get(type(info.values[0])) else None
    return _LEAVES.get((type(info), kind))


def _wrapped(inner: Leaf | None) -> Leaf | None:
    """Return the conversions of a message with the one field `value`."""
    if inner is None:
        return None
    read, write = inner

    def read_value(message: Message) -> Any:
        return message.value if read is None else read(message.value)

    def write_value(value: Any, message: Message) -> None:
        message.value = value if write is None else write(value)

    return Leaf(read_value, write_value)


def _whole(value: float) -> int:
    number = int(value)
    if number != value:
        raise ValueError(f"{value!r} is no whole number, and its field is of integers")
    return number


def _float_of(number: int) -> float:
    value = float(number)
    if value != number:
        raise ValueError(f"{number} is no 64-bit float")
    return value


def _half(value: float) -> float:
    """Return a float if 32 bits can hold it. Raises ValueError otherwise."""
    as_float32 = struct.unpack("f", struct.pack("f", value))[0]
    if as_float32 != value and not math.isnan(value):
        raise ValueError(
            f"{value!r} is no 32-bit float, which its field holds: declare it `double`, or write {as_float32!r}"
        )
    return value


_KIND_OF_LITERAL: dict[type, str] = {str: "string", int: "int"}


def _one_of(values: tuple[Any, ...]) -> Leaf:
    allowed = frozenset(values)

    def check(value: object) -> Any:
        if value not in allowed:
            raise ValueError(f"{value!r} is none of {', '.join(map(repr, values))}")
        return value

    return Leaf(check, check)


_LEAVES: dict[tuple[type, str], Leaf] = {
    (inspect.BoolType, "bool"): Leaf(),
    (inspect.IntType, "int"): Leaf(),
    (inspect.FloatType, "double"): Leaf(),
    (inspect.FloatType, "float"): Leaf(None, _half),
    (inspect.FloatType, "int"): Leaf(_float_of, _whole),
    (inspect.StrType, "string"): Leaf(),
    (inspect.BytesType, "bytes"): Leaf(),
    (inspect.ByteArrayType, "bytes"): Leaf(bytearray, bytes),
    (inspect.UUIDType, "string"): Leaf(uuid.UUID, str),
    (inspect.UUIDType, "bytes"): Leaf(lambda data: uuid.UUID(bytes=data), lambda value: value.bytes),
    (inspect.DecimalType, "string"): Leaf(decimal.Decimal, str),
    (inspect.DecimalType, "confluent.type.Decimal"): Leaf(read_decimal, write_decimal),
    (inspect.DateTimeType, "google.protobuf.Timestamp"): Leaf(read_timestamp, write_timestamp),
    (inspect.TimeDeltaType, "google.protobuf.Duration"): Leaf(read_duration, write_duration),
    (inspect.DateType, "google.type.Date"): Leaf(read_date, write_date),
    (inspect.TimeType, "google.type.TimeOfDay"): Leaf(read_time, write_time),
    (inspect.AnyType, "bool"): Leaf(),
    (inspect.AnyType, "int"): Leaf(),
    (inspect.AnyType, "double"): Leaf(),
    (inspect.AnyType, "float"): Leaf(None, _half),
    (inspect.AnyType, "string"): Leaf(),
    (inspect.AnyType, "bytes"): Leaf(),
    (inspect.AnyType, "confluent.type.Decimal"): Leaf(read_decimal, write_decimal),
    (inspect.AnyType, "google.protobuf.Timestamp"): Leaf(read_timestamp, write_timestamp),
    (inspect.AnyType, "google.protobuf.Duration"): Leaf(read_duration, write_duration),
    (inspect.AnyType, "google.type.Date"): Leaf(read_date, write_date),
    (inspect.AnyType, "google.type.TimeOfDay"): Leaf(read_time, write_time),
    (inspect.AnyType, "google.protobuf.Value"): Leaf(read_json, write_json),
    (inspect.AnyType, "google.protobuf.Struct"): Leaf(read_json_object, write_json_object),
    (inspect.AnyType, "google.protobuf.ListValue"): Leaf(read_json_list, write_json_list),
}


def _enum_by_name(enum: EnumDescriptor, info: Any) -> Leaf:
    """Match the members of an enum class with the values of the schema by name, with or without the enum's prefix."""
    members = {without_prefix(name, enum.name): name for name in enum.values_by_name}
    by_name = {
        member: members.get(without_prefix(member.name, enum.name)) or members.get(member.value) for member in info.cls
    }
    by_name = {member: name for member, name in by_name.items() if name is not None}
    if not by_name:
        raise SerdeError(f"the enum {enum.full_name} has no value that {info.cls.__name__} has, by its name")
    numbers = {member: enum.values_by_name[name].number for member, name in by_name.items()}
    return _by_number(enum, info.cls.__name__, numbers)


def _enum_as_literal(enum: EnumDescriptor, info: Any) -> Leaf | None:
    """Represent the values of an enum by their names, which are literals of the type."""
    numbers = {without_prefix(value.name, enum.name): value.number for value in enum.values}
    numbers |= {value.name: value.number for value in enum.values if value.name in info.values}
    return _by_number(
        enum, " | ".join(map(repr, info.values)), {name: numbers[name] for name in info.values if name in numbers}
    )


def _by_number(enum: EnumDescriptor, enum_name: str, numbers: dict[Any, int]) -> Leaf:
    values: dict[int, Any] = {}
    for value, number in numbers.items():
        values.setdefault(number, value)

    def read(number: int) -> Any:
        try:
            return values[number]
        except KeyError:
            name = enum.values_by_number[number].name if number in enum.values_by_number else number
            raise ValueError(f"{name} of the enum {enum.full_name} is no value of {enum_name}") from None

    def write(value: Any) -> int:
        try:
            return numbers[value]
        except (KeyError, TypeError):
            raise ValueError(f"{value!r} is no value of the enum {enum.full_name}") from None

    return Leaf(read, write)


def _enum_as_text(enum: EnumDescriptor, info: object) -> Leaf:
    """Represent the values of an enum by their names in the schema."""
    return _by_number(enum, "its schema", {value.name: value.number for value in enum.values})


def _enum_as_name_or_number(enum: EnumDescriptor, info: object) -> Leaf:
    """Represent the values of an enum by their names in the schema, and unknown values by their numbers."""
    names = {number: value.name for number, value in enum.values_by_number.items()}
    numbers = {name: value.number for name, value in enum.values_by_name.items()}

    def read(number: int) -> Any:
        return names.get(number, number)

    def write(value: Any) -> int:
        number = numbers.get(value, value)
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError(f"{value!r} is no value of the enum {enum.full_name}: it has {', '.join(numbers)}")
        return number

    return Leaf(read, write)


_OF_ENUMS: dict[type, Callable[[EnumDescriptor, object], Leaf | None]] = {
    inspect.EnumType: _enum_by_name,
    inspect.LiteralType: _enum_as_literal,
    inspect.StrType: _enum_as_text,
    inspect.AnyType: _enum_as_name_or_number,
    inspect.IntType: lambda enum, info: Leaf(),
}

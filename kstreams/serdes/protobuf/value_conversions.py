"""`ValueConversion`: the conversions between single Protobuf values and Python values, and the members of oneofs."""

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
from kstreams.serdes.protobuf.fields import alternatives, class_of, shape_for, type_in_words
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
class OneofMember:
    """A field of a oneof, and the type of the union whose values the field holds."""

    field: FieldDescriptor
    info: inspect.Type
    kind: type


def oneof_members(oneof: OneofDescriptor, info: inspect.Type) -> list[OneofMember]:
    """Return the field of a oneof for each type of a union: the field with the class's name, or the first that fits.

    Raises
    ------
    SerdeError
        If the oneof has no field for a type.
    """
    unused_fields = list(oneof.fields)
    members = []
    for member_info in alternatives(info).types:
        field = _field_for(member_info, unused_fields)
        if field is None:
            raise SerdeError(f"the oneof {oneof.full_name} has no field for {type_in_words(member_info)}")
        unused_fields.remove(field)
        members.append(OneofMember(field, member_info, class_of(member_info)))
    return members


def _field_for(info: object, fields: list[FieldDescriptor]) -> FieldDescriptor | None:
    name = getattr(info, "cls", type(None)).__name__
    for field in fields:
        if field.message_type is not None and field.message_type.name == name:
            return field
    for field in fields:
        if field.name == snake_case(name):
            return field
    return next((field for field in fields if _fits(field, info)), None)


def _fits(field: FieldDescriptor, info: object) -> bool:
    return value_conversion(field, info) is not None or bool(
        field.message_type and shape_for(field.message_type, info) is not None
    )


class ValueConversion(NamedTuple):
    """The conversions of a value. None means that protobuf accepts and returns the Python value itself.

    For a scalar, `write(value)` returns a scalar. For a message, `write(value, message)` fills the message.
    """

    read: Callable[[Any], Any] | None = None
    write: Callable[..., Any] | None = None


_INTEGER_TYPES = (
    "INT32",
    "INT64",
    "UINT32",
    "UINT64",
    "SINT32",
    "SINT64",
    "FIXED32",
    "FIXED64",
    "SFIXED32",
    "SFIXED64",
)
_SCALAR_KINDS: dict[int, str] = {
    **{getattr(FieldDescriptor, f"TYPE_{name}"): "int" for name in _INTEGER_TYPES},
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_ENUM: "enum",
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
"""Messages that hold one scalar, and so make the scalar optional. The value is the kind of the scalar."""


def field_kind(field: FieldDescriptor) -> str:
    """Return the kind of a field's values: `int`, `double`, ..., or the full name of the message."""
    return _SCALAR_KINDS.get(field.type) or str(field.message_type.full_name)


def value_conversion(field: FieldDescriptor, info: object) -> ValueConversion | None:
    """Return the conversions between single values of a field and of a type. None if the type does not fit.

    Raises
    ------
    SerdeError
        If the enum of the field and that of the type have no value in common.
    """
    kind = field_kind(field)
    if kind in WRAPPERS:
        return _wrapper_conversion(_unwrapped_conversion(WRAPPERS[kind], info))
    if kind == "enum":
        of_enum = _ENUM_CONVERSIONS.get(type(info))
        return of_enum(field.enum_type, info) if of_enum else None
    return _unwrapped_conversion(kind, info)


def _unwrapped_conversion(kind: str, info: object) -> ValueConversion | None:
    if isinstance(info, inspect.LiteralType):
        return _literal_conversion(info.values) if kind == _LITERAL_KINDS.get(type(info.values[0])) else None
    return _CONVERSIONS.get((type(info), kind))


def _wrapper_conversion(inner: ValueConversion | None) -> ValueConversion | None:
    """Return the conversions of a message with the one field `value`."""
    if inner is None:
        return None
    read, write = inner

    def read_value(message: Message) -> Any:
        return message.value if read is None else read(message.value)

    def write_value(value: Any, message: Message) -> None:
        message.value = value if write is None else write(value)

    return ValueConversion(read_value, write_value)


def _to_integer(value: float) -> int:
    number = int(value)
    if number != value:
        raise ValueError(f"{value!r} is no whole number, and its field holds integers")
    return number


def _to_float(number: int) -> float:
    value = float(number)
    if value != number:
        raise ValueError(f"{number} is no 64-bit float")
    return value


def _require_float32(value: float) -> float:
    """Return a float that 32 bits can hold. Raises ValueError for other floats."""
    as_float32 = struct.unpack("f", struct.pack("f", value))[0]
    if as_float32 != value and not math.isnan(value):
        raise ValueError(
            f"{value!r} is no 32-bit float, and its field holds no others: declare it `double`, or write {as_float32!r}"
        )
    return value


_LITERAL_KINDS: dict[type, str] = {str: "string", int: "int"}


def _literal_conversion(values: tuple[object, ...]) -> ValueConversion:
    allowed = frozenset(values)

    def check(value: object) -> object:
        if value not in allowed:
            raise ValueError(f"{value!r} is none of {', '.join(map(repr, values))}")
        return value

    return ValueConversion(check, check)


_CONVERSIONS: dict[tuple[type, str], ValueConversion] = {
    (inspect.BoolType, "bool"): ValueConversion(),
    (inspect.IntType, "int"): ValueConversion(),
    (inspect.FloatType, "double"): ValueConversion(),
    (inspect.FloatType, "float"): ValueConversion(None, _require_float32),
    (inspect.FloatType, "int"): ValueConversion(_to_float, _to_integer),
    (inspect.StrType, "string"): ValueConversion(),
    (inspect.BytesType, "bytes"): ValueConversion(),
    (inspect.ByteArrayType, "bytes"): ValueConversion(bytearray, bytes),
    (inspect.UUIDType, "string"): ValueConversion(uuid.UUID, str),
    (inspect.UUIDType, "bytes"): ValueConversion(lambda data: uuid.UUID(bytes=data), lambda value: value.bytes),
    (inspect.DecimalType, "string"): ValueConversion(decimal.Decimal, str),
    (inspect.DecimalType, "confluent.type.Decimal"): ValueConversion(read_decimal, write_decimal),
    (inspect.DateTimeType, "google.protobuf.Timestamp"): ValueConversion(read_timestamp, write_timestamp),
    (inspect.TimeDeltaType, "google.protobuf.Duration"): ValueConversion(read_duration, write_duration),
    (inspect.DateType, "google.type.Date"): ValueConversion(read_date, write_date),
    (inspect.TimeType, "google.type.TimeOfDay"): ValueConversion(read_time, write_time),
    (inspect.AnyType, "bool"): ValueConversion(),
    (inspect.AnyType, "int"): ValueConversion(),
    (inspect.AnyType, "double"): ValueConversion(),
    (inspect.AnyType, "float"): ValueConversion(None, _require_float32),
    (inspect.AnyType, "string"): ValueConversion(),
    (inspect.AnyType, "bytes"): ValueConversion(),
    (inspect.AnyType, "confluent.type.Decimal"): ValueConversion(read_decimal, write_decimal),
    (inspect.AnyType, "google.protobuf.Timestamp"): ValueConversion(read_timestamp, write_timestamp),
    (inspect.AnyType, "google.protobuf.Duration"): ValueConversion(read_duration, write_duration),
    (inspect.AnyType, "google.type.Date"): ValueConversion(read_date, write_date),
    (inspect.AnyType, "google.type.TimeOfDay"): ValueConversion(read_time, write_time),
    (inspect.AnyType, "google.protobuf.Value"): ValueConversion(read_json, write_json),
    (inspect.AnyType, "google.protobuf.Struct"): ValueConversion(read_json_object, write_json_object),
    (inspect.AnyType, "google.protobuf.ListValue"): ValueConversion(read_json_list, write_json_list),
}


def _enum_by_name(enum: EnumDescriptor, info: Any) -> ValueConversion:
    """Match the members of an enum class with the values of the schema by name, with or without the enum's prefix."""
    name_in_schema = {without_prefix(name, enum.name): name for name in enum.values_by_name}
    names = {
        member: name_in_schema.get(without_prefix(member.name, enum.name)) or name_in_schema.get(member.value)
        for member in info.cls
    }
    numbers = {member: enum.values_by_name[name].number for member, name in names.items() if name is not None}
    if not numbers:
        raise SerdeError(
            f"the enum {enum.full_name} and {info.cls.__name__} have no value with the same name: rename the members"
        )
    return _enum_conversion(enum, info.cls.__name__, numbers)


def _enum_as_literal(enum: EnumDescriptor, info: Any) -> ValueConversion | None:
    """Represent the values of an enum by their names, which are literals of the type."""
    numbers = {without_prefix(value.name, enum.name): value.number for value in enum.values}
    numbers |= {value.name: value.number for value in enum.values if value.name in info.values}
    return _enum_conversion(
        enum, " | ".join(map(repr, info.values)), {name: numbers[name] for name in info.values if name in numbers}
    )


def _enum_conversion(enum: EnumDescriptor, enum_name: str, numbers: dict[Any, int]) -> ValueConversion:
    values: dict[int, object] = {}
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

    return ValueConversion(read, write)


def _enum_as_text(enum: EnumDescriptor, info: object) -> ValueConversion:
    """Represent the values of an enum by their names in the schema."""
    return _enum_conversion(enum, "its schema", {value.name: value.number for value in enum.values})


def _enum_as_name_or_number(enum: EnumDescriptor, info: object) -> ValueConversion:
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

    return ValueConversion(read, write)


_ENUM_CONVERSIONS: dict[type, Callable[[EnumDescriptor, object], ValueConversion | None]] = {
    inspect.EnumType: _enum_by_name,
    inspect.LiteralType: _enum_as_literal,
    inspect.StrType: _enum_as_text,
    inspect.AnyType: _enum_as_name_or_number,
    inspect.IntType: lambda enum, info: ValueConversion(),
}

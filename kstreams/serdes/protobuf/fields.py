"""Pairs of a class's and a message's fields, and the check that a writer's message can be read as a reader's."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import convert
from kstreams.serdes.plain_check import limits_in
from kstreams.serdes.protobuf.class_shapes import ClassField, MessageShape, class_shape

_TYPE_NAMES = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in vars(FieldDescriptor)
    if name.startswith("TYPE_")
}  # fmt: skip
_READABLE_AS: dict[int, tuple[int, ...]] = {
    FieldDescriptor.TYPE_INT32: (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_ENUM),
    FieldDescriptor.TYPE_UINT32: (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_INT64),
    FieldDescriptor.TYPE_SINT32: (FieldDescriptor.TYPE_SINT64,),
    FieldDescriptor.TYPE_BOOL: (
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT32,
        FieldDescriptor.TYPE_UINT64,
    ),
    FieldDescriptor.TYPE_ENUM: (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64),
    FieldDescriptor.TYPE_STRING: (FieldDescriptor.TYPE_BYTES,),
    FieldDescriptor.TYPE_BYTES: (FieldDescriptor.TYPE_STRING,),
    FieldDescriptor.TYPE_MESSAGE: (FieldDescriptor.TYPE_BYTES,),
}
"""The other types that values of a type can be read as."""


def require_name(written: Descriptor, name: str) -> None:
    """Raise SerdeError if a message does not have a name. The package does not matter."""
    if written.name != name:
        raise SerdeError(
            f"the record is the message {written.full_name}, but {name} is expected: name the message, as message="
            f"{written.name!r}, or read all messages of a topic as dicts with ks.Protobuf()"
        )


def require_readable(written: Descriptor, read: Descriptor) -> None:
    """Raise SerdeError if records of a writer's message cannot be read as a reader's. The message names the field."""
    for reason in _unreadable_reasons(written, read, set()):
        raise SerdeError(f"records of {written.full_name} cannot be read as {read.full_name}: {reason}")


def _unreadable_reasons(written: Descriptor, read: Descriptor, visited: set[tuple[str, str]]) -> Iterator[str]:
    pair = (written.full_name, read.full_name)
    if pair in visited:
        return
    visited.add(pair)
    for field in written.fields:
        other = read.fields_by_number.get(field.number)
        if other is not None:
            yield from _unreadable_field_reasons(field, other, visited)


def _unreadable_field_reasons(
    field: FieldDescriptor, other: FieldDescriptor, visited: set[tuple[str, str]]
) -> Iterator[str]:
    are_messages = field.type == other.type == FieldDescriptor.TYPE_MESSAGE
    if other.type != field.type and other.type not in _READABLE_AS.get(field.type, ()):
        yield f"{_field_in_words(field)} was written, {_field_in_words(other)} is read"
    elif field.is_repeated and not other.is_repeated:
        yield f"{_field_in_words(field)} was written several times, {_field_in_words(other)} is read once"
    elif are_messages and is_map(field) != is_map(other):
        yield f"of {_field_in_words(field)} and {_field_in_words(other)} one is a map"
    elif are_messages:
        yield from _unreadable_reasons(field.message_type, other.message_type, visited)


def _field_in_words(field: FieldDescriptor) -> str:
    return f"the {_TYPE_NAMES[field.type]} {field.name} = {field.number}"


ANY = inspect.AnyType()
_NONE = inspect.NoneType()


@dataclass(frozen=True, slots=True)
class FieldPair:
    """A field of a class and its counterpart in a message: a field, a oneof, or nothing."""

    class_field: ClassField
    message_field: FieldDescriptor | None = None
    oneof: OneofDescriptor | None = None


def field_pairs(message: Descriptor, shape: MessageShape) -> list[FieldPair]:
    """Pair the fields of a class with those of a message, by name or by JSON name (camel case)."""
    by_name = {field.json_name: field for field in message.fields} | {field.name: field for field in message.fields}
    oneofs = {oneof.name: oneof for oneof in message.oneofs}
    return [
        FieldPair(
            field, by_name.get(field.wire_name), None if field.wire_name in by_name else oneofs.get(field.wire_name)
        )
        for field in shape.fields
    ]


def is_map(field: FieldDescriptor) -> bool:
    """True if a field is a map."""
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def shape_for(message: Descriptor, info: object) -> MessageShape | None:
    """Return the shape of the class that a message is read as. For `Any`, this is a dict of all fields."""
    if isinstance(info, inspect.AnyType) or _is_any_dict(info):
        return dict_shape(message)
    return class_shape(info)


def _is_any_dict(info: object) -> bool:
    return (
        isinstance(info, inspect.DictType)
        and isinstance(info.key_type, inspect.AnyType | inspect.StrType)
        and isinstance(info.value_type, inspect.AnyType)
    )


def dict_shape(message: Descriptor) -> MessageShape:
    """Return the shape of dicts with an entry for each field of a message. An absent field is None."""
    fields = tuple(
        ClassField(field.name, field.name, any_info(field), required=False, default=_none) for field in message.fields
    )
    return MessageShape(dict, fields, are_keys=True)


def _none() -> None:
    return None


def any_info(field: FieldDescriptor) -> inspect.Type:
    """Return the type of a field that no class declares: a list, a dict, a value, or a value or None."""
    if is_map(field):
        return inspect.DictType(ANY, ANY)
    if field.is_repeated:
        return inspect.ListType(ANY)
    return inspect.UnionType((ANY, _NONE)) if field.has_presence else ANY


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The types of a union without None.

    Parameters
    ----------
    types : sequence of msgspec.inspect.Type
    optional : bool
        True if the union contains None.
    """

    types: Sequence[inspect.Type]
    optional: bool


def alternatives(info: inspect.Type) -> Alternatives:
    """Split a union into None and the other types. A type that is no union is the only alternative."""
    if not isinstance(info, inspect.UnionType):
        return Alternatives((info,), isinstance(info, inspect.NoneType))
    types = tuple(member for member in info.types if not isinstance(member, inspect.NoneType))
    return Alternatives(types, len(types) < len(info.types))


def class_of(info: object) -> type:
    """Return the class of values of a type inside a union."""
    kind = getattr(info, "cls", None) or _CLASSES.get(type(info))
    if kind is None:
        raise SerdeError(
            f"{type_in_words(info)} cannot be one of several types in Protobuf: make it a field of a class"
        )
    return kind


_CLASSES: dict[type, type] = {
    inspect.BoolType: bool,
    inspect.IntType: int,
    inspect.FloatType: float,
    inspect.StrType: str,
    inspect.BytesType: bytes,
    inspect.DecimalType: decimal.Decimal,
    inspect.UUIDType: uuid.UUID,
    inspect.DateTimeType: datetime.datetime,
    inspect.DateType: datetime.date,
    inspect.TimeType: datetime.time,
    inspect.TimeDeltaType: datetime.timedelta,
}


def type_in_words(info: object) -> str:
    """Return the name of a type for error messages."""
    cls = getattr(info, "cls", None) or _CLASSES.get(type(info))
    return cls.__name__ if cls is not None else type(info).__name__.removesuffix("Type").lower()


def limits_check(info: inspect.Type) -> Callable[[Any], Any] | None:
    """Return the function that checks the limits of `msgspec.Meta`. None without limits."""
    base = _CLASSES_WITH_LIMITS.get(type(info))
    limits = {} if base is None else limits_in(info)
    if not limits:
        return None
    kind: Any = Annotated.__class_getitem__((base, msgspec.Meta(**limits)))  # type: ignore[attr-defined]
    return partial(convert, kind=kind)


_CLASSES_WITH_LIMITS: dict[type, type] = {
    inspect.IntType: int,
    inspect.FloatType: float,
    inspect.StrType: str,
    inspect.BytesType: bytes,
    inspect.DateTimeType: datetime.datetime,
    inspect.ListType: list,
    inspect.DictType: dict,
}

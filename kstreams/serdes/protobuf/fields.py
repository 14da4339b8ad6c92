"""Pairs of fields of a class and of a message, and whether a writer's message can be read as a reader's."""

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
from kstreams.serdes.protobuf.class_shapes import ClassField, MessageShape, class_shape

_D = FieldDescriptor
_NAMES = {
    getattr(_D, name): name.removeprefix("TYPE_").lower()
    for name in vars(_D)
    if name.startswith("TYPE_")
}  # fmt: skip
_WIDER: dict[int, tuple[int, ...]] = {
    _D.TYPE_INT32: (_D.TYPE_INT64, _D.TYPE_ENUM),
    _D.TYPE_UINT32: (_D.TYPE_UINT64, _D.TYPE_INT64),
    _D.TYPE_SINT32: (_D.TYPE_SINT64,),
    _D.TYPE_BOOL: (_D.TYPE_INT32, _D.TYPE_INT64, _D.TYPE_UINT32, _D.TYPE_UINT64),
    _D.TYPE_ENUM: (_D.TYPE_INT32, _D.TYPE_INT64),
    _D.TYPE_STRING: (_D.TYPE_BYTES,),
    _D.TYPE_BYTES: (_D.TYPE_STRING,),
    _D.TYPE_MESSAGE: (_D.TYPE_BYTES,),
}
"""The other types that values of a written type can be read as."""


def demand_named(written: Descriptor, name: str) -> None:
    """Raise SerdeError unless a message has a name, in any package."""
    if written.name != name:
        raise SerdeError(
            f"the record is the message {written.full_name}, but {name} is expected: name the message, as message="
            f"{written.name!r}, or read all messages of a topic as dicts with ks.Protobuf()"
        )


def demand_readable(written: Descriptor, read: Descriptor) -> None:
    """Raise an error unless records of a writer's message can be read as a reader's.

    Raises
    ------
    SerdeError
        With the field that cannot be read.
    """
    for reason in _reasons(written, read, set()):
        raise SerdeError(f"records of {written.full_name} cannot be read as {read.full_name}: {reason}")


def _reasons(written: Descriptor, read: Descriptor, visited: set[tuple[str, str]]) -> Iterator[str]:
    pair = (written.full_name, read.full_name)
    if pair in visited:
        return
    visited.add(pair)
    for field in written.fields:
        other = read.fields_by_number.get(field.number)
        if other is not None:
            yield from _field_reasons(field, other, visited)


def _field_reasons(field: FieldDescriptor, other: FieldDescriptor, visited: set[tuple[str, str]]) -> Iterator[str]:
    are_messages = field.type == other.type == _D.TYPE_MESSAGE
    if other.type != field.type and other.type not in _WIDER.get(field.type, ()):
        yield f"{_shown(field)} was written, {_shown(other)} is read"
    elif field.is_repeated and not other.is_repeated:
        yield f"{_shown(field)} was written several times, {_shown(other)} is read once"
    elif are_messages and is_map(field) != is_map(other):
        yield f"of {_shown(field)} and {_shown(other)} one is a map"
    elif are_messages:
        yield from _reasons(field.message_type, other.message_type, visited)


def _shown(field: FieldDescriptor) -> str:
    return f"the {_NAMES[field.type]} {field.name} = {field.number}"


ANY = inspect.AnyType()
_NONE = inspect.NoneType()


@dataclass(frozen=True, slots=True)
class Pair:
    """A field of a class and its counterpart in a message: a field, a oneof, or nothing."""

    of_class: ClassField
    of_message: FieldDescriptor | None = None
    oneof: OneofDescriptor | None = None


def pairs(message: Descriptor, shape: MessageShape) -> list[Pair]:
    """Pair the fields of a class with those of a message, by name or by JSON name (camel case)."""
    by_name = {field.json_name: field for field in message.fields} | {field.name: field for field in message.fields}
    oneofs = {oneof.name: oneof for oneof in message.oneofs}
    return [
        Pair(field, by_name.get(field.wire_name), None if field.wire_name in by_name else oneofs.get(field.wire_name))
        for field in shape.fields
    ]


def is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def shape_for(message: Descriptor, info: object) -> MessageShape | None:
    """Return the shape of the class that a message is read as, or a dict of all fields if the type names no class."""
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
        ClassField(field.name, field.name, any_info(field), required=False, default=_nothing)
        for field in message.fields
    )
    return MessageShape(dict, fields, are_keys=True)


def _nothing() -> None:
    return None


def any_info(field: FieldDescriptor) -> Any:
    """Return the type of a field that no class declares: a list, a dict, or a value or None."""
    if is_map(field):
        return inspect.DictType(ANY, ANY)
    if field.is_repeated:
        return inspect.ListType(ANY)
    return inspect.UnionType((ANY, _NONE)) if field.has_presence else ANY


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The types of a union without None."""

    types: Sequence[Any]
    optional: bool


def alternatives(info: object) -> Alternatives:
    if not isinstance(info, inspect.UnionType):
        return Alternatives((info,), isinstance(info, inspect.NoneType))
    types = tuple(member for member in info.types if not isinstance(member, inspect.NoneType))
    return Alternatives(types, len(types) < len(info.types))


def class_of(info: object) -> type:
    """Return the class of values of a type inside a union."""
    kind = getattr(info, "cls", None) or _CLASSES.get(type(info))
    if kind is None:
        raise SerdeError(f"{shown(info)} cannot be one of several types in Protobuf: make it the field of a class")
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


def shown(info: object) -> str:
    """Return the name of a type for error messages."""
    cls = getattr(info, "cls", None) or _CLASSES.get(type(info))
    return cls.__name__ if cls is not None else type(info).__name__.removesuffix("Type").lower()


def limits_of(info: object) -> Callable[[Any], Any] | None:
    """Return a function that checks the limits of `msgspec.Meta`, or None if there are none."""
    base = _LIMITED.get(type(info))
    limits = dict(_limits(info)) if base is not None else {}
    if not limits:
        return None
    kind: Any = Annotated.__class_getitem__((base, msgspec.Meta(**limits)))  # type: ignore[attr-defined]
    return partial(convert, kind=kind)


def _limits(info: Any) -> Iterator[tuple[str, Any]]:
    for name in info.__struct_fields__:
        value = getattr(info, name)
        if name not in ("item_type", "key_type", "value_type") and value is not None:
            yield name, value


_LIMITED: dict[type, Any] = {
    inspect.IntType: int,
    inspect.FloatType: float,
    inspect.StrType: str,
    inspect.BytesType: bytes,
    inspect.DateTimeType: datetime.datetime,
    inspect.ListType: list,
    inspect.DictType: dict,
}

"""`info_of`: msgspec's description of a type. It supports unions of classes, which msgspec refuses without tags."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from kstreams.kernel.decoders import type_info


def info_of(kind: object) -> inspect.Type:
    """Return msgspec's description of a type. It may contain unions of classes, which a oneof distinguishes.

    Raises
    ------
    TypeError, NameError
        If msgspec cannot read the type, or an annotation cannot be resolved.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Card:
    ...     number: str
    >>> @dataclasses.dataclass
    ... class Transfer:
    ...     iban: str
    >>> [member.cls.__name__ for member in info_of(Card | Transfer).types]
    ['Card', 'Transfer']
    """
    try:
        return type_info(kind)
    except TypeError:
        return _TypeDescriptions().info(kind)


class _TypeDescriptions:
    """The descriptions of a type and its parts, with one for each class, since classes may be recursive."""

    def __init__(self) -> None:
        self._classes: dict[type, inspect.Type] = {}

    def info(self, kind: object) -> inspect.Type:
        describe = _DESCRIPTIONS.get(typing.get_origin(kind))
        if describe is not None:
            return describe(self, typing.get_args(kind))
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return self._describe_class(kind, inspect.DataclassType(kind, ()), _dataclass_fields(kind))
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._describe_class(kind, inspect.StructType(kind, ()), list(msgspec.structs.fields(kind)))
        return type_info(kind)

    def _describe_class(self, kind: type, info: Any, fields: Sequence[Any]) -> inspect.Type:
        if kind not in self._classes:
            self._classes[kind] = info
            hints = typing.get_type_hints(kind, include_extras=True)
            info.fields = tuple(
                inspect.Field(
                    name=field.name,
                    encode_name=getattr(field, "encode_name", field.name),
                    type=self.info(hints[field.name]),
                    required=field.default is field.default_factory,
                    default=field.default,
                    default_factory=field.default_factory,
                )
                for field in fields
            )
        return self._classes[kind]


@dataclasses.dataclass(frozen=True)
class _DataclassField:
    """A field of a dataclass in the form of a Struct's field."""

    name: str
    default: Any
    default_factory: Any


def _dataclass_fields(kind: Any) -> list[_DataclassField]:
    def msgspec_default(value: object) -> object:
        return msgspec.NODEFAULT if value is dataclasses.MISSING else value

    return [
        _DataclassField(field.name, msgspec_default(field.default), msgspec_default(field.default_factory))
        for field in dataclasses.fields(kind)
        if field.init
    ]


def _describe_union(descriptions: _TypeDescriptions, arguments: tuple[object, ...]) -> inspect.Type:
    return inspect.UnionType(tuple(map(descriptions.info, arguments)))


def _describe_tuple(descriptions: _TypeDescriptions, arguments: tuple[object, ...]) -> inspect.Type:
    if len(arguments) != 2 or arguments[1] is not Ellipsis:
        return inspect.TupleType(tuple(map(descriptions.info, arguments)))
    return inspect.VarTupleType(descriptions.info(arguments[0]))


def _describe_dict(descriptions: _TypeDescriptions, arguments: tuple[object, ...]) -> inspect.Type:
    key_type, value_type = arguments
    return inspect.DictType(descriptions.info(key_type), descriptions.info(value_type))


_DESCRIPTIONS: dict[object, Callable[[_TypeDescriptions, tuple[object, ...]], inspect.Type]] = {
    typing.Union: _describe_union,
    types.UnionType: _describe_union,
    tuple: _describe_tuple,
    list: lambda descriptions, arguments: inspect.ListType(descriptions.info(arguments[0])),
    set: lambda descriptions, arguments: inspect.SetType(descriptions.info(arguments[0])),
    frozenset: lambda descriptions, arguments: inspect.FrozenSetType(descriptions.info(arguments[0])),
    dict: _describe_dict,
}

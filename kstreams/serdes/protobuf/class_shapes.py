"""`MessageShape`: a dataclass, Struct, named tuple, TypedDict or pydantic model, with its fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from inspect import signature
from typing import Any

import msgspec
from msgspec import inspect

from kstreams.serdes.protobuf.type_infos import info_of
from kstreams.serdes.pydantic_models import is_model


@dataclass(frozen=True, slots=True)
class ClassField:
    """A field of a class.

    Parameters
    ----------
    name : str
        The name of the attribute, or the key in a TypedDict.
    wire_name : str
        The name in schemas. It differs from `name` if the class renames its fields or defines an alias.
    info : msgspec.inspect.Type
    required : bool
        True if the class has no default for the field.
    default : callable
        Returns the default. It raises LookupError for a required field.
    """

    name: str
    wire_name: str
    info: inspect.Type
    required: bool
    default: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class MessageShape:
    """A class with named fields.

    Parameters
    ----------
    cls : type
    fields : tuple of ClassField
    are_keys : bool
        True if the values are dicts.
    positional : tuple of str
        The fields that can be passed as positional arguments, which is faster than passing keywords.
    from_dict : callable, optional
        Creates a value from a dict of its fields. None if the class takes keyword arguments.
    """

    cls: type
    fields: tuple[ClassField, ...]
    are_keys: bool = False
    positional: tuple[str, ...] = ()
    from_dict: Callable[[dict[str, object]], object] | None = None


def _no_default() -> object:
    raise LookupError("a required field has no default")


@singledispatch
def class_shape(info: object) -> MessageShape | None:
    """Return the shape of a class with named fields. None for any other type.

    Examples
    --------
    >>> from kstreams.serdes.protobuf.type_infos import info_of
    >>> class Order(msgspec.Struct, rename="camel"):
    ...     order_id: int
    >>> [field.wire_name for field in class_shape(info_of(Order)).fields]
    ['orderId']
    """
    return None


def _shape_of_object(info: inspect.StructType | inspect.DataclassType | inspect.NamedTupleType) -> MessageShape:
    return MessageShape(info.cls, tuple(map(_class_field, info.fields)), positional=_positional_parameters(info.cls))


def _positional_parameters(cls: type) -> tuple[str, ...]:
    parameters = signature(cls).parameters.values()
    return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD)


for _info in (inspect.StructType, inspect.DataclassType, inspect.NamedTupleType):
    class_shape.register(_info, _shape_of_object)


@class_shape.register
def _(info: inspect.TypedDictType) -> MessageShape:
    return MessageShape(info.cls, tuple(map(_class_field, info.fields)), are_keys=True)


@class_shape.register
def _(info: inspect.CustomType) -> MessageShape | None:
    return _shape_of_model(info.cls) if is_model(info.cls) else None


def _class_field(field: inspect.Field) -> ClassField:
    return ClassField(field.name, field.encode_name, field.type, field.required, _default_of(field))


def _default_of(field: inspect.Field) -> Callable[[], Any]:
    if field.default_factory is not msgspec.NODEFAULT:
        factory: Callable[[], object] = field.default_factory
        return factory
    return _no_default if field.default is msgspec.NODEFAULT else partial(_constant, field.default)


def _constant(value: object) -> Any:
    return value


def _shape_of_model(model: Any) -> MessageShape:
    """Return the shape of a pydantic model. Its validation creates values from a dict by alias."""
    fields = tuple(
        ClassField(
            name,
            field.alias or name,
            info_of(field.annotation),
            field.is_required(),
            partial(field.get_default, call_default_factory=True),
        )
        for name, field in model.model_fields.items()
    )
    return MessageShape(model, fields, from_dict=model.model_validate)

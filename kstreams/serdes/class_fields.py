"""The fields of a class as columns: their Arrow types, and their declarations in a Struct of some of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, cast, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import msgspec.inspect
import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import type_info

_field = cast(Any, msgspec.field)  # its annotations do not allow both defaults to be absent
ARROW_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


class FieldType(NamedTuple):
    """The Arrow type of a field, and whether it may be null."""

    type: pa.DataType
    is_optional: bool


def field_types(kind: object, fields: Sequence[str]) -> dict[str, FieldType]:
    """Return the column types of fields of a class.

    Raises
    ------
    SerdeError
        If the class has a `__post_init__`, lacks a field, or a field has no columnar form.

    Examples
    --------
    >>> field_types(dict[str, int], ["a"])
    {'a': FieldType(type=DataType(int64), is_optional=True)}
    """
    layout = layout_of(kind)
    for name in fields:
        if name not in layout:
            raise SerdeError(f"{kind} has no field {name!r}")
    hints = {name: layout[name][1] for name in fields}
    return {name: FieldType(_arrow_type(name, hint), type(None) in get_args(hint)) for name, hint in hints.items()}


def _arrow_type(name: str, kind: object) -> pa.DataType:
    members = [member for member in get_args(kind) or (kind,) if member is not type(None)]
    if len(members) != 1 or members[0] not in ARROW_TYPES or (get_args(kind) and len(get_args(kind)) != 2):
        raise SerdeError(f"the field {name!r} is {kind}, which has no columnar form; int, float, str and bool have")
    return ARROW_TYPES[members[0]]


def layout_of(kind: object) -> dict[str, tuple[str, Any, Any]]:
    """Return, for each field of a type, its declaration in a Struct of some of the fields."""
    if isinstance(kind, type) and hasattr(kind, "__post_init__"):
        raise SerdeError(f"{kind.__name__} has a __post_init__, which columns cannot run")
    for holds, layout in _LAYOUTS:
        if holds(kind):
            fields: dict[str, tuple[str, Any, Any]] = layout(kind)
            return fields
    raise SerdeError(f"{kind} has no named fields")


def _of_struct(kind: Any) -> dict[str, tuple[str, Any, Any]]:
    config = kind.__struct_config__
    if config.array_like or config.tag_field or config.forbid_unknown_fields:
        raise SerdeError(f"{kind.__name__} is array_like, tagged or forbids unknown fields: it is read as a whole only")
    return {
        field.name: (
            field.name,
            field.type,
            _field(default=field.default, default_factory=field.default_factory, name=field.encode_name),
        )
        for field in msgspec.structs.fields(kind)
    }


def _of_dataclass(kind: Any) -> dict[str, tuple[str, Any, Any]]:
    hints = get_type_hints(kind, include_extras=True)  # with limits of msgspec.Meta, which have no columnar form
    return {
        field.name: (
            field.name,
            hints[field.name],
            _field(default=_given(field.default), default_factory=_given(field.default_factory)),
        )
        for field in dataclasses.fields(kind)
    }


def _given(default: object) -> Any:
    return msgspec.NODEFAULT if default is dataclasses.MISSING else default


def _of_typed_dict(kind: object) -> dict[str, tuple[str, Any, Any]]:
    described = cast(msgspec.inspect.TypedDictType, type_info(kind))
    required = {field.name for field in described.fields if field.required}
    return {
        name: (name, hint, _field() if name in required else _field(default=None))
        for name, hint in get_type_hints(kind).items()
    }


class _OfDict(dict[str, tuple[str, Any, Any]]):
    """The fields of a dict: every name is an optional field."""

    def __init__(self, kind: Any) -> None:
        self.kind = get_args(kind)[1] | None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __missing__(self, name: str) -> tuple[str, Any, Any]:
        return (name, self.kind, _field(default=None))


_LAYOUTS: tuple[tuple[Any, Any], ...] = (
    (lambda kind: isinstance(kind, type) and issubclass(kind, msgspec.Struct), _of_struct),
    (dataclasses.is_dataclass, _of_dataclass),
    (is_typeddict, _of_typed_dict),
    (lambda kind: cast(Any, get_origin(kind)) is dict and get_args(kind)[0] is str, _OfDict),
)

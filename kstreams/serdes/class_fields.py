"""The fields of a class as columns: Arrow types, and declarations for a msgspec Struct with some of the fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import msgspec.inspect
import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import type_info

_field = cast(Any, msgspec.field)  # its annotations require one of the two defaults
_ARROW_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


FieldDeclaration: TypeAlias = tuple[str, Any, Any]
"""The name, the type and the `msgspec.field` of a field, as `msgspec.defstruct` takes them."""


class FieldType(NamedTuple):
    """The Arrow type of a field, and whether it may be null."""

    type: pa.DataType
    is_optional: bool


def field_types(kind: object, fields: Sequence[str]) -> dict[str, FieldType]:
    """Return the column types of fields of a class.

    Raises
    ------
    SerdeError
        If the class has a `__post_init__` or lacks a field, or a field has no columnar form.

    Examples
    --------
    >>> field_types(dict[str, int], ["a"])
    {'a': FieldType(type=DataType(int64), is_optional=True)}
    """
    declarations = field_declarations(kind)
    for name in fields:
        if name not in declarations:
            raise SerdeError(f"{kind} has no field {name!r}")
    hints = {name: declarations[name][1] for name in fields}
    return {name: FieldType(_arrow_type(name, hint), type(None) in get_args(hint)) for name, hint in hints.items()}


def _arrow_type(name: str, kind: object) -> pa.DataType:
    members = [member for member in get_args(kind) or (kind,) if member is not type(None)]
    if len(members) != 1 or members[0] not in _ARROW_TYPES or (get_args(kind) and len(get_args(kind)) != 2):
        raise SerdeError(f"the field {name!r} is {kind}, which has no columnar form; int, float, str and bool have")
    return _ARROW_TYPES[members[0]]


def field_declarations(kind: object) -> Mapping[str, FieldDeclaration]:
    """Return the declaration of each field of a type, for a Struct with some of the fields.

    Raises
    ------
    SerdeError
        If the type has no named fields, or its objects can only be read as a whole.
    """
    if isinstance(kind, type) and hasattr(kind, "__post_init__"):
        raise SerdeError(f"{kind.__name__} has a __post_init__, which columns cannot run")
    for is_of_form, declarations_of in _FORMS:
        if is_of_form(kind):
            return declarations_of(kind)
    raise SerdeError(f"{kind} has no named fields")


def _of_struct(kind: Any) -> dict[str, FieldDeclaration]:
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


def _of_dataclass(kind: Any) -> dict[str, FieldDeclaration]:
    hints = get_type_hints(kind, include_extras=True)  # includes limits of msgspec.Meta, which have no columnar form
    return {
        field.name: (
            field.name,
            hints[field.name],
            _field(default=_msgspec_default(field.default), default_factory=_msgspec_default(field.default_factory)),
        )
        for field in dataclasses.fields(kind)
    }


def _msgspec_default(default: object) -> Any:
    return msgspec.NODEFAULT if default is dataclasses.MISSING else default


def _of_typed_dict(kind: object) -> dict[str, FieldDeclaration]:
    info = cast(msgspec.inspect.TypedDictType, type_info(kind))
    required_names = {field.name for field in info.fields if field.required}
    return {
        name: (name, hint, _field() if name in required_names else _field(default=None))
        for name, hint in get_type_hints(kind).items()
    }


class _DictFields(dict[str, FieldDeclaration]):
    """The fields of a `dict[str, T]`: every name is an optional field."""

    def __init__(self, kind: object) -> None:
        super().__init__()
        self.value_type = get_args(kind)[1] | None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __missing__(self, name: str) -> FieldDeclaration:
        return (name, self.value_type, _field(default=None))


_FORMS: tuple[tuple[Callable[[object], bool], Callable[[object], Mapping[str, FieldDeclaration]]], ...] = (
    (lambda kind: isinstance(kind, type) and issubclass(kind, msgspec.Struct), _of_struct),
    (dataclasses.is_dataclass, _of_dataclass),
    (is_typeddict, _of_typed_dict),
    (lambda kind: cast(Any, get_origin(kind)) is dict and get_args(kind)[0] is str, _DictFields),
)

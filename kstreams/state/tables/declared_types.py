"""Arrow types of Python types, for columns whose values do not determine a type, such as empty columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import pyarrow as pa
from msgspec import inspect

from kstreams.kernel.decoders import type_info


def completed(column: pa.ChunkedArray, kind: object) -> pa.ChunkedArray:
    """Return a column whose type has all fields that a Python type declares. Types that values determine stay.

    Parameters
    ----------
    column : ChunkedArray
    kind : type or None
        The Python type of the values.

    Examples
    --------
    >>> print(completed(pa.chunked_array([], pa.null()), list[int]).type)
    list<item: int64>
    """
    arrow_type = _with_declared_types(column.type, _arrow_type_of(kind))
    return column if arrow_type == column.type else column.cast(arrow_type)


def in_utc(column: pa.Array) -> pa.Array:
    """Return a column whose aware datetimes are in UTC, so that columns of different offsets can be concatenated."""
    arrow_type = _in_utc(column.type)
    return column if arrow_type == column.type else column.cast(arrow_type)


def _in_utc(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow_type):
        return arrow_type if arrow_type.tz is None else pa.timestamp(arrow_type.unit, "UTC")
    if pa.types.is_list(arrow_type):
        return pa.list_(_in_utc(arrow_type.value_type))
    if pa.types.is_struct(arrow_type):
        return pa.struct([(field.name, _in_utc(field.type)) for field in arrow_type])
    return arrow_type


def _with_declared_types(arrow_type: pa.DataType, declared: pa.DataType) -> pa.DataType:
    if pa.types.is_null(arrow_type):
        return declared
    if pa.types.is_list(arrow_type) and pa.types.is_list(declared):
        return pa.list_(_with_declared_types(arrow_type.value_type, declared.value_type))
    if pa.types.is_struct(arrow_type) and pa.types.is_struct(declared):
        types = {field.name: field.type for field in arrow_type}
        fields = {field.name: _with_declared_types(types.get(field.name, pa.null()), field.type) for field in declared}
        return pa.struct(list((fields | {name: kind for name, kind in types.items() if name not in fields}).items()))
    return arrow_type


def _arrow_type_of(kind: object) -> pa.DataType:
    """Return the Arrow type of a Python type; null if only values determine it, as for dict, Decimal and unions."""
    try:
        return _convert(type_info(kind), ())
    except (TypeError, NameError):
        return pa.null()


def _convert(info: object, parents: tuple[object, ...]) -> pa.DataType:
    """Return the Arrow type of a msgspec type; `parents` are the classes around it."""
    if type(info) in _SCALAR_TYPES:
        return _SCALAR_TYPES[type(info)]
    convert = _CONVERTERS.get(type(info))
    kind = getattr(info, "cls", None)
    is_recursive = kind is not None and kind in parents
    if convert is None or is_recursive:
        return pa.null()
    return convert(info, (*parents, kind))


def _struct_of_fields(info: Any, parents: tuple[Any, ...]) -> pa.DataType:
    if getattr(info, "array_like", False):
        return pa.null()
    tag = getattr(info, "tag_field", None)
    fields = [(tag, pa.string() if isinstance(info.tag, str) else pa.int64())] if tag else []
    return pa.struct([*fields, *((field.encode_name, _convert(field.type, parents)) for field in info.fields)])


def _list_type(info: Any, parents: tuple[Any, ...]) -> pa.DataType:
    return pa.list_(_convert(info.item_type, parents))


def _union_type(info: inspect.UnionType, parents: tuple[object, ...]) -> pa.DataType:
    members = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    return _convert(members[0], parents) if len(members) == 1 else pa.null()


def _timestamp_type(info: inspect.DateTimeType, parents: tuple[object, ...]) -> pa.DataType:
    return pa.timestamp("us", None if info.tz is False else "UTC")


def _enum_type(info: inspect.EnumType, parents: tuple[object, ...]) -> pa.DataType:
    members: list[Enum] = list(info.cls)
    return pa.array([member.value for member in members]).type


def _pydantic_type(info: inspect.CustomType, parents: tuple[Any, ...]) -> pa.DataType:
    fields: Mapping[str, Any] = getattr(info.cls, "model_fields", {})
    types = {field.alias or name: _convert(type_info(field.annotation), parents) for name, field in fields.items()}
    return pa.struct(list(types.items())) if types else pa.null()


_SCALAR_TYPES: dict[object, pa.DataType] = {
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.StrType: pa.string(),
    inspect.BoolType: pa.bool_(),
    inspect.BytesType: pa.binary(),
    inspect.UUIDType: pa.string(),
    inspect.DateType: pa.date32(),
    inspect.TimeType: pa.time64("us"),
    inspect.TimeDeltaType: pa.duration("us"),
}
_CONVERTERS: dict[object, Callable[[Any, tuple[Any, ...]], pa.DataType]] = {
    inspect.DateTimeType: _timestamp_type,
    inspect.EnumType: _enum_type,
    inspect.LiteralType: lambda info, parents: pa.array(info.values).type,
    inspect.ListType: _list_type,
    inspect.SetType: _list_type,
    inspect.FrozenSetType: _list_type,
    inspect.VarTupleType: _list_type,
    inspect.UnionType: _union_type,
    inspect.StructType: _struct_of_fields,
    inspect.DataclassType: _struct_of_fields,
    inspect.TypedDictType: _struct_of_fields,
    inspect.CustomType: _pydantic_type,
}

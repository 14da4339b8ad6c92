"""Arrow types that a Python type declares: what no value of a column says, as where it is empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import pyarrow as pa
from msgspec import inspect

from kstreams.kernel.decoders import type_info


def completed(column: pa.ChunkedArray, kind: object) -> pa.ChunkedArray:
    """A column whose type has all fields that a Python type declares; what values say of it stays.

    Parameters
    ----------
    column : ChunkedArray
    kind : type or None
        That of the values.

    Examples
    --------
    >>> print(completed(pa.chunked_array([], pa.null()), list[int]).type)
    list<item: int64>
    """
    arrow_type = _filled(column.type, _declared(kind))
    return column if arrow_type == column.type else column.cast(arrow_type)


def in_utc(column: pa.Array) -> pa.Array:
    """A column whose aware datetimes are in UTC, whatever offsets they came with: columns of two go together so."""
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


def _filled(arrow_type: pa.DataType, declared: pa.DataType) -> pa.DataType:
    if pa.types.is_null(arrow_type):
        return declared
    if pa.types.is_list(arrow_type) and pa.types.is_list(declared):
        return pa.list_(_filled(arrow_type.value_type, declared.value_type))
    if pa.types.is_struct(arrow_type) and pa.types.is_struct(declared):
        types = {field.name: field.type for field in arrow_type}
        fields = {field.name: _filled(types.get(field.name, pa.null()), field.type) for field in declared}
        return pa.struct(list((fields | {name: kind for name, kind in types.items() if name not in fields}).items()))
    return arrow_type


def _declared(kind: object) -> pa.DataType:
    """The Arrow type of a Python type; null where values alone can say it, as of a dict, a Decimal or a union."""
    try:
        return _of(type_info(kind), ())
    except (TypeError, NameError):
        return pa.null()


def _of(info: object, within: tuple[object, ...]) -> pa.DataType:
    if type(info) in _PLAIN:
        return _PLAIN[type(info)]
    convert = _MADE.get(type(info))
    kind = getattr(info, "cls", None)
    if convert is None or (kind is not None and kind in within):  # a tree of no known depth
        return pa.null()
    return convert(info, (*within, kind))


def _of_fields(info: Any, within: tuple[Any, ...]) -> pa.DataType:
    if getattr(info, "array_like", False):
        return pa.null()
    tag = getattr(info, "tag_field", None)
    fields = [(tag, pa.string() if isinstance(info.tag, str) else pa.int64())] if tag else []
    return pa.struct([*fields, *((field.encode_name, _of(field.type, within)) for field in info.fields)])


def _of_list(info: Any, within: tuple[Any, ...]) -> pa.DataType:
    return pa.list_(_of(info.item_type, within))


def _of_union(info: inspect.UnionType, within: tuple[object, ...]) -> pa.DataType:
    members = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    return _of(members[0], within) if len(members) == 1 else pa.null()


def _of_time(info: inspect.DateTimeType, within: tuple[object, ...]) -> pa.DataType:
    return pa.timestamp("us", None if info.tz is False else "UTC")


def _of_enum(info: inspect.EnumType, within: tuple[object, ...]) -> pa.DataType:
    members: list[Enum] = list(info.cls)
    return pa.array([member.value for member in members]).type


def _of_model(info: inspect.CustomType, within: tuple[Any, ...]) -> pa.DataType:
    fields: Mapping[str, Any] = getattr(info.cls, "model_fields", {})  # of pydantic
    types = {field.alias or name: _of(type_info(field.annotation), within) for name, field in fields.items()}
    return pa.struct(list(types.items())) if types else pa.null()


_PLAIN: dict[object, pa.DataType] = {
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
_MADE: dict[object, Callable[[Any, tuple[Any, ...]], pa.DataType]] = {
    inspect.DateTimeType: _of_time,
    inspect.EnumType: _of_enum,
    inspect.LiteralType: lambda info, within: pa.array(info.values).type,
    inspect.ListType: _of_list,
    inspect.SetType: _of_list,
    inspect.FrozenSetType: _of_list,
    inspect.VarTupleType: _of_list,
    inspect.UnionType: _of_union,
    inspect.StructType: _of_fields,
    inspect.DataclassType: _of_fields,
    inspect.TypedDictType: _of_fields,
    inspect.CustomType: _of_model,
}

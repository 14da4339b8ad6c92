"""Types of JSON values as types of Spark: their DDL, and what `from_json` and `to_json` do not check by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import NamedTuple, TypeAlias

from msgspec import NODEFAULT, inspect, structs

from kstreams.kernel.decoders import type_info
from kstreams.runtime.spark.code.columns import in_quotes
from kstreams.runtime.spark.code.unsayable import Unsayable

Conditions: TypeAlias = Callable[[str], list[str]]
"""Returns the conditions that a value must meet, from the text of the column."""


class JsonType(NamedTuple):
    """A type of Spark for a type of values.

    Parameters
    ----------
    ddl : str
        The type in Spark.
    conditions : callable
        The conditions that a value which is not null must meet.
    unwritable : str or None
        The reason why `to_json` does not write the text that msgspec writes; None if it does.
    is_nullable : bool
    """

    ddl: str
    conditions: Conditions
    unwritable: str | None = None
    is_nullable: bool = False

    def required(self, column: str) -> list[str]:
        """Return the conditions of a part of a value, which may be null if its type says so."""
        of_value = self.conditions(column)
        if not self.is_nullable:
            return [f"{column}.isNotNull()", *of_value]
        return [f"({column}.isNull() | ({' & '.join(of_value)}))"] if of_value else []


def json_type_of(kind: object) -> JsonType:
    """Return the type of Spark for a Python type.

    Raises
    ------
    Unsayable
        If Spark has no such type, or reads or writes other JSON for it.

    Examples
    --------
    >>> json_type_of(dict[str, list[int]]).ddl
    'map<string, array<bigint>>'
    """
    try:
        return _json_type(type_info(kind))
    except (TypeError, NameError, RecursionError) as error:
        raise Unsayable(f"{kind!r} has no type in Spark: {error}") from error


def field_types(kind: object) -> dict[str, JsonType]:
    """Return the fields of a type with their types, in the order in which they are written.

    Raises
    ------
    Unsayable
        If the type has no fields.
    """
    info = type_info(kind)
    if not isinstance(info, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
        raise Unsayable(f"{kind!r} has no fields that a struct of Spark could have")
    return {field.name: _json_type(field.type) for field in info.fields}


def nothing(column: str) -> list[str]:
    """Return no conditions."""
    return []


@singledispatch
def _json_type(info: object) -> JsonType:
    raise Unsayable(f"{type(info).__name__.removesuffix('Type')} has no type in Spark with the same JSON")


def _plain(ddl: str, unwritable: str | None = None) -> Callable[[inspect.Type], JsonType]:
    """Return the rule of a type without parts. Spark cannot check constraints, such as `ge=0`."""

    def rule(info: inspect.Type) -> JsonType:
        constraints = {name: limit for name, limit in structs.asdict(info).items() if limit not in (None, "base64")}
        if constraints:
            raise Unsayable(f"Spark does not check the constraints {constraints} of a {ddl}")
        return JsonType(ddl, nothing, unwritable)

    return rule


_TIMES = "Spark writes datetimes in UTC and without microseconds"
_json_type.register(inspect.IntType, _plain("bigint"))
_json_type.register(inspect.FloatType, _plain("double"))
_json_type.register(inspect.StrType, _plain("string"))
_json_type.register(inspect.BoolType, _plain("boolean"))
_json_type.register(inspect.BytesType, _plain("binary"))
_json_type.register(inspect.DateType, _plain("date"))
_json_type.register(inspect.DateTimeType, _plain("timestamp", _TIMES))


@_json_type.register
def _(info: inspect.UnionType) -> JsonType:
    members = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    if len(members) != 1:
        raise Unsayable("a union of several types has no type in Spark")
    return _json_type(members[0])._replace(is_nullable=True)


@_json_type.register
def _(info: inspect.ListType) -> JsonType:
    if info.min_length is not None or info.max_length is not None:
        raise Unsayable("Spark does not check the length of a list")
    item = _json_type(info.item_type)
    return JsonType(f"array<{item.ddl}>", lambda column: _of_all(column, item), item.unwritable)


@_json_type.register
def _(info: inspect.DictType) -> JsonType:
    if not isinstance(info.key_type, inspect.StrType):
        raise Unsayable("the names of a JSON object are texts")
    item = _json_type(info.value_type)
    ddl = f"map<string, {item.ddl}>"
    return JsonType(ddl, lambda column: _of_all(f"F.map_values({column})", item), item.unwritable)


def _of_all(items: str, item: JsonType) -> list[str]:
    """Return the condition that all items of an array meet theirs."""
    of_item = item.required("item")
    return [f"F.forall({items}, lambda item: {' & '.join(of_item)})"] if of_item else []


@_json_type.register
def _(info: inspect.StructType) -> JsonType:
    if info.array_like or info.forbid_unknown_fields or info.tag_field is not None:
        raise Unsayable(f"{info.cls.__name__} is an array, has a tag or forbids unknown fields")
    if info.cls.__struct_config__.omit_defaults:
        raise Unsayable(f"{info.cls.__name__} leaves out fields that have their defaults")
    return _with_fields(info.fields)


@_json_type.register
def _(info: inspect.DataclassType) -> JsonType:
    return _with_fields(info.fields)


@_json_type.register
def _(info: inspect.TypedDictType) -> JsonType:
    if not all(field.required for field in info.fields):
        raise Unsayable(f"fields of {info.cls.__name__} may be absent, which is not the same as null")
    return _with_fields(info.fields)


def _with_fields(fields: Sequence[inspect.Field]) -> JsonType:
    for field in fields:
        _require_plain(field)
    types = {field.name: _json_type(field.type) for field in fields}
    ddl = ", ".join(f"{quoted(name)}: {part.ddl}" for name, part in types.items())
    unwritable = next((part.unwritable for part in types.values() if part.unwritable), None)

    def conditions(column: str) -> list[str]:
        return [text for name, part in types.items() for text in part.required(f"{column}[{in_quotes(name)}]")]

    return JsonType(f"struct<{ddl}>", conditions, unwritable)


def _require_plain(field: inspect.Field) -> None:
    if field.encode_name != field.name:
        raise Unsayable(f"the field {field.name!r} has another name in JSON")
    has_default = field.default is not NODEFAULT or field.default_factory is not NODEFAULT
    if has_default and field.default is not None:
        raise Unsayable(f"Spark does not set the default of the field {field.name!r}")


def quoted(name: str) -> str:
    """Return a name as SQL takes it.

    Examples
    --------
    >>> quoted("amount"), quoted("net amount")
    ('amount', '`net amount`')
    """
    return name if name.isidentifier() and name.isascii() else f"`{name.replace('`', '``')}`"

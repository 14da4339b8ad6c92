"""Types of JSON values as types of Spark: their DDL, and what `from_json` and `to_json` do not do by themselves.

Datetimes, dates and Decimals are the texts of JSON in Spark: so their zones, microseconds and digits remain.
"""

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
    normal : callable or None
        Returns the value with all texts as msgspec writes them, from the text of the column; None if they are so.
    is_nullable : bool
    """

    ddl: str
    conditions: Conditions
    normal: Callable[[str], str] | None = None
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


def _plain(ddl: str, conditions: Conditions = nothing) -> Callable[[inspect.Type], JsonType]:
    """Return the rule of a type without parts. Spark cannot check constraints, such as `ge=0`."""

    def rule(info: inspect.Type) -> JsonType:
        constraints = {name: limit for name, limit in structs.asdict(info).items() if limit not in (None, "base64")}
        if constraints:
            raise Unsayable(f"Spark does not check the constraints {constraints} of a {ddl}")
        return JsonType(ddl, conditions)

    return rule


_json_type.register(inspect.IntType, _plain("bigint"))
_json_type.register(inspect.FloatType, _plain("double"))
_json_type.register(inspect.StrType, _plain("string"))
_json_type.register(inspect.BoolType, _plain("boolean"))
_json_type.register(inspect.BytesType, _plain("binary"))
_json_type.register(inspect.DateType, _plain("string", lambda column: [f"is_date({column})"]))
_json_type.register(inspect.DecimalType, _plain("string", lambda column: [f"is_decimal({column})"]))


@_json_type.register
def _(info: inspect.DateTimeType) -> JsonType:
    zone = {None: "", True: ", has_zone=True", False: ", has_zone=False"}[info.tz]
    return JsonType("string", lambda column: [f"is_datetime({column}{zone})"], "datetime_text({})".format)


@_json_type.register
def _(info: inspect.LiteralType) -> JsonType:
    if not all(isinstance(value, str) for value in info.values):
        raise Unsayable("a Literal of other values than texts has no type in Spark")
    texts = ", ".join(in_quotes(str(value)) for value in info.values)
    return JsonType("string", lambda column: [f"{column}.isin({texts})"])


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
    normal = _each("F.transform({}, lambda item: {})", item)
    return JsonType(f"array<{item.ddl}>", lambda column: _of_all(column, item), normal)


@_json_type.register
def _(info: inspect.DictType) -> JsonType:
    if not isinstance(info.key_type, inspect.StrType):
        raise Unsayable("the names of a JSON object are texts")
    item = _json_type(info.value_type)
    ddl = f"map<string, {item.ddl}>"
    normal = _each("F.transform_values({}, lambda name, item: {})", item)
    return JsonType(ddl, lambda column: _of_all(f"F.map_values({column})", item), normal)


def _each(template: str, item: JsonType) -> Callable[[str], str] | None:
    """Return the function that makes the items of a collection normal; None if there is nothing to do."""
    if item.normal is None:
        return None
    of_item = item.normal("item")
    return lambda column: template.format(column, of_item)


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
    changed = {name: part.normal for name, part in types.items() if part.normal is not None}

    def conditions(column: str) -> list[str]:
        return [text for name, part in types.items() for text in part.required(f"{column}[{in_quotes(name)}]")]

    def normal(column: str) -> str:
        fields = ((name, of_field(f"{column}[{in_quotes(name)}]")) for name, of_field in changed.items())
        return column + "".join(f".withField({in_quotes(quoted(name))}, {text})" for name, text in fields)

    return JsonType(f"struct<{ddl}>", conditions, normal if changed else None)


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

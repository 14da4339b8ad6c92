"""The Python type of an expression, from the types of the key and value; checks fields and types."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from kstreams.errors import TopologyError
from kstreams.expressions.expression import Expr
from kstreams.expressions.generated import struct_type
from kstreams.expressions.operations import BY_ANOTHER, Operation
from kstreams.kernel.advice import nearest_name
from kstreams.record import Windowed

NUMBERS = (int, float, Decimal)
ORDERED = (*NUMBERS, str, bytes, datetime)


class Typed(NamedTuple):
    """A type and whether null may occur; `Any` is a type that is not known."""

    kind: Any
    nullable: bool = True

    @property
    def annotation(self) -> Any:
        """The type as a Python annotation."""
        return self.kind | None if self.nullable and self.kind is not Any else self.kind


UNKNOWN = Typed(Any)


@dataclasses.dataclass(frozen=True, slots=True)
class Schema:
    """The types of the key and value of a stream, and of the right value in a join; None if unknown."""

    key: object = None
    value: object = None
    right: object = None


TEXT_CHANGES = (
    Operation.UPPER,
    Operation.LOWER,
    Operation.TITLE,
    Operation.REVERSE,
    Operation.SLICE,
    Operation.HEAD,
    Operation.TAIL,
    Operation.STRIP,
    Operation.STRIP_START,
    Operation.STRIP_END,
    Operation.STRIP_PREFIX,
    Operation.STRIP_SUFFIX,
    Operation.PAD_START,
    Operation.PAD_END,
    Operation.ZFILL,
    Operation.REPLACE,
    Operation.REPLACE_MATCHES,
)
"""The operations that make a text of each text."""


def type_of(expr: Expr, schema: Schema) -> Typed:
    """Return the type of an expression over records of a schema.

    Raises
    ------
    TopologyError
        If a field does not exist, or an operation does not fit the types.

    Examples
    --------
    >>> from kstreams.expressions import value
    >>> type_of(value.str.len() > 3, Schema(str, str)).kind
    <class 'bool'>
    """
    return _RULES[expr.operation](expr, [type_of(node, schema) for node in expr.inputs], schema)


def split_optional(kind: object) -> Typed:
    """Split `int | None` into `int` and nullable."""
    if kind is None:
        return UNKNOWN
    if get_origin(kind) in (Union, types.UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        if len(members) == 1:
            return Typed(members[0], True)
    return Typed(kind, False)


@lru_cache(maxsize=256)
def fields_of(kind: object) -> dict[str, object] | None:
    """Return the field names and types of a Struct, dataclass or TypedDict; None for a type without named fields."""
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    if is_struct or dataclasses.is_dataclass(kind) or is_typeddict(kind):
        return get_type_hints(kind)
    return None


def takes_null(kind: object, name: str) -> bool:
    """Return whether a field of a type may be None; True if the field is not known.

    Examples
    --------
    >>> takes_null(dict[str, int], "a"), takes_null(dict[str, int | None], "a"), takes_null(dict, "a")
    (False, True, True)
    """
    declared = get_args(kind)[1] if get_origin(kind) is dict else (fields_of(kind) or {}).get(name, Any)
    return declared is Any or declared is None or type(None) in get_args(declared)


def _leaf_kind(declared: object) -> Typed:
    kind = split_optional(declared)
    return kind if kind.kind is Any else Typed(kind.kind, True)  # a tombstone has no value


def _field(expr: Expr, _: list[Typed], schema: Schema) -> Typed:
    return _field_of(expr, split_optional(schema.value if expr.operation is Operation.FIELD else schema.right).kind)


def _field_of(expr: Expr, kind: object) -> Typed:
    if kind is Any or kind is dict:
        return UNKNOWN
    if get_origin(kind) is dict:
        return Typed(split_optional(get_args(kind)[1]).kind)
    fields = fields_of(kind)
    if fields is None:
        raise TopologyError(f"{expr!r}: a value of type {_name(kind)} has no fields; use ks.value")
    if expr.detail not in fields:
        nearest = nearest_name(expr.detail, fields, cutoff=0.5)
        hint = f"did you mean {nearest!r}? " if nearest else ""
        raise TopologyError(f"{expr!r}: {_name(kind)} has no field {expr.detail!r}; {hint}It has: {', '.join(fields)}")
    return Typed(_without_literals(split_optional(fields[expr.detail]).kind))


def _without_literals(kind: Any) -> Any:
    """Return the type of the texts of a `Literal`; any other type as it is."""
    is_texts = get_origin(kind) is Literal and all(isinstance(text, str) for text in get_args(kind))
    return str if is_texts else kind


def _key(_: Expr, __: list[Typed], schema: Schema) -> Typed:
    kind = split_optional(schema.key).kind
    if get_origin(kind) is Windowed:
        return Typed(get_args(kind)[0])
    return Typed(kind)


def _window_bound(expr: Expr, _: list[Typed], schema: Schema) -> Typed:
    kind = split_optional(schema.key).kind
    if kind is Any or kind is Windowed or get_origin(kind) is Windowed:
        return Typed(int, False)
    raise TopologyError(f"{expr!r} needs a windowed key, but the key is {_name(kind)}")


def _arithmetic(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    kinds = [node.kind for node in inputs]
    may_be_null = any(node.nullable for node in inputs) or expr.operation in PARTIAL
    if Any in kinds:
        return UNKNOWN
    if expr.operation is Operation.ADD and kinds == [str, str]:
        return Typed(str, may_be_null)
    return Typed(_number_type(expr, inputs), may_be_null)


def _number_type(expr: Expr, inputs: list[Typed]) -> type:
    """Return the type of an operation on numbers."""
    kinds = {node.kind for node in inputs}
    if not kinds <= set(NUMBERS):
        raise _mismatch(expr, inputs, "needs numbers" + (" or two texts" if expr.operation is Operation.ADD else ""))
    if kinds >= {Decimal, float}:
        raise _mismatch(expr, inputs, "cannot mix exact and binary fractions")
    if Decimal in kinds:
        return Decimal
    return float if float in kinds or expr.operation is Operation.DIVIDE else int


PARTIAL = (Operation.DIVIDE, Operation.FLOOR_DIVIDE, Operation.MODULO)
"""The operations that return null for a zero divisor."""


def _comparison(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    kinds = {node.kind for node in inputs}
    by_order = expr.operation not in (Operation.EQUAL, Operation.NOT_EQUAL)
    fits = len(kinds) == 1 or kinds <= set(NUMBERS)
    if Any not in kinds and (not fits or not kinds <= ({*ORDERED} if by_order else {*ORDERED, bool})):
        raise _mismatch(expr, inputs, "cannot compare these")
    return Typed(bool, any(node.nullable for node in inputs))


def _logic(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    if any(node.kind not in (bool, Any) for node in inputs):
        raise _mismatch(expr, inputs, "needs truth values; put comparisons in parentheses")
    return Typed(bool, any(node.nullable for node in inputs))


def _is_in(expr: Expr, inputs: list[Typed], schema: Schema) -> Typed:
    for value in expr.detail:
        _comparison(expr, [inputs[0], Typed(type(value), False)], schema)
    return Typed(bool, inputs[0].nullable)


def _fill_null(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    kinds = {node.kind for node in inputs}
    if Any in kinds:
        return UNKNOWN
    if len(kinds) > 1:
        raise _mismatch(expr, inputs, "needs a replacement of the same type")
    return Typed(inputs[0].kind, inputs[1].nullable)


def _same_number(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    if inputs[0].kind not in (*NUMBERS, Any):
        raise _mismatch(expr, inputs, "needs a number")
    return inputs[0]


def _choice(expr: Expr, inputs: list[Typed], schema: Schema) -> Typed:
    condition, *ways = inputs
    _logic(expr, [condition], schema)
    kinds = {way.kind for way in ways}
    if Any in kinds:
        return UNKNOWN
    if len(kinds) > 1:
        raise _mismatch(expr, ways, "needs values of one type")
    return Typed(ways[0].kind, len(ways) == 1 or any(way.nullable for way in ways))


def _member(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    return _field_of(expr, inputs[0].kind)


def _rule_of(kind: type, problem: str, result: type) -> Callable[[Expr, list[Typed], Schema], Typed]:
    """Return the rule of an operation on one input of one type."""

    def rule(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
        if inputs[0].kind not in (kind, Any):
            raise _mismatch(expr, inputs, problem)
        return Typed(result, inputs[0].nullable)

    return rule


def _text(result: type) -> Callable[[Expr, list[Typed], Schema], Typed]:
    return _rule_of(str, "needs text", result)


def _item_type(expr: Expr, inputs: list[Typed]) -> Typed:
    """Return the type of the items of a list, which may be null."""
    kind = inputs[0].kind
    if kind in (Any, list, tuple):
        return UNKNOWN
    origin = get_origin(kind)
    if origin is list or (origin is tuple and get_args(kind)[1:] == (Ellipsis,)):
        return Typed(split_optional(get_args(kind)[0]).kind)
    raise _mismatch(expr, inputs, "needs a list")


def _list_length(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    _item_type(expr, inputs)
    return Typed(int, inputs[0].nullable)


def _list_contains(expr: Expr, inputs: list[Typed], schema: Schema) -> Typed:
    _comparison(expr, [_item_type(expr, inputs), Typed(type(expr.detail), False)], schema)
    return Typed(bool, inputs[0].nullable)


def _list_join(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    if _item_type(expr, inputs).kind not in (str, Any):
        raise _mismatch(expr, inputs, "needs a list of texts")
    return Typed(str, inputs[0].nullable)


def _digest(expr: Expr, inputs: list[Typed], schema: Schema) -> Typed:
    return _text(int if expr.detail == "crc32" else str)(expr, inputs, schema)


def _may_be_null(rule: Callable[[Expr, list[Typed], Schema], Typed]) -> Callable[[Expr, list[Typed], Schema], Typed]:
    """Return the rule of an operation that also has null results for values."""
    return lambda expr, inputs, schema: Typed(rule(expr, inputs, schema).kind)


def _temporal(result: type) -> Callable[[Expr, list[Typed], Schema], Typed]:
    return _rule_of(datetime, "needs a datetime", result)


_CASTS: dict[type, tuple[type, ...]] = {
    int: (int, float, bool, Decimal, datetime),
    float: (int, float, Decimal),
    str: (int, str),
    datetime: (int, datetime),
}


def _cast(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    source = inputs[0].kind
    if expr.detail not in _CASTS or (source is not Any and source not in _CASTS[expr.detail]):
        raise _mismatch(expr, inputs, "is not a cast that expressions know: write a function")
    return Typed(expr.detail, inputs[0].nullable or (source, expr.detail) not in _TOTAL_CASTS)


_TOTAL_CASTS = {(kind, kind) for kind in _CASTS} | {(bool, int), (int, float), (int, str), (datetime, int)}


def _struct(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    if any(node.kind is Any for node in inputs):
        return UNKNOWN
    fields = tuple((name, node.annotation) for name, node in zip(expr.detail, inputs, strict=True))
    return Typed(struct_type(fields), False)


def _number_aggregate(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    if inputs[0].kind not in (*NUMBERS, Any):
        raise _mismatch(expr, inputs, "needs numbers")
    return Typed(inputs[0].kind)


def _order_aggregate(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    if inputs[0].kind not in (*ORDERED, Any):
        raise _mismatch(expr, inputs, "needs values that have an order")
    return Typed(inputs[0].kind)


def _by_another(expr: Expr, inputs: list[Typed], schema: Schema) -> Typed:
    _order_aggregate(expr, inputs[1:], schema)
    return Typed(inputs[0].kind)


def _quantile(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    if inputs[0].kind not in (int, float, Any):
        raise _mismatch(expr, inputs, "needs int or float")
    return Typed(float if expr.detail[1] in ("midpoint", "linear") else inputs[0].kind)


def _approx_quantile(expr: Expr, inputs: list[Typed], schema: Schema) -> Typed:
    _number_aggregate(expr, inputs, schema)
    return Typed(float)


def _distinct(expr: Expr, inputs: list[Typed], _: Schema) -> Typed:
    if inputs[0].kind not in (*ORDERED, bool, Any):
        raise _mismatch(expr, inputs, "needs values that have an order")
    return Typed(int, False)


def _collect(_: Expr, inputs: list[Typed], __: Schema) -> Typed:
    kind = inputs[0].kind
    return Typed(list if kind is Any else list[kind], False)  # type: ignore[valid-type]


def _mismatch(expr: Expr, inputs: list[Typed], problem: str) -> TopologyError:
    return TopologyError(f"{expr!r} {problem}, not {' and '.join(_name(node.kind) for node in inputs)}")


def _name(kind: object) -> str:
    return getattr(kind, "__name__", str(kind))


_RULES: dict[Operation, Callable[[Expr, list[Typed], Schema], Typed]] = {
    Operation.FIELD: _field,
    Operation.VALUE: lambda e, i, schema: _leaf_kind(schema.value),
    Operation.RIGHT_FIELD: _field,
    Operation.RIGHT: lambda e, i, schema: _leaf_kind(schema.right),
    Operation.KEY: _key,
    Operation.TIMESTAMP: lambda e, i, s: Typed(int, False),
    Operation.TOPIC: lambda e, i, s: Typed(str),
    Operation.PARTITION: lambda e, i, s: Typed(int),
    Operation.OFFSET: lambda e, i, s: Typed(int),
    Operation.HEADER: lambda e, i, s: Typed(split_optional(e.detail.result).kind),
    Operation.HEADERS: lambda e, i, s: Typed(tuple[tuple[str, bytes | None], ...], False),
    Operation.WINDOW_START: _window_bound,
    Operation.WINDOW_END: _window_bound,
    Operation.COLUMN: lambda e, i, s: e.detail.kind,
    Operation.LITERAL: lambda e, i, s: Typed(type(e.detail), False),
    **dict.fromkeys(
        (Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY, Operation.NEGATE, *PARTIAL),
        _arithmetic,
    ),
    **dict.fromkeys(
        (
            Operation.EQUAL,
            Operation.NOT_EQUAL,
            Operation.LESS,
            Operation.LESS_EQUAL,
            Operation.GREATER,
            Operation.GREATER_EQUAL,
        ),
        _comparison,
    ),
    **dict.fromkeys((Operation.AND, Operation.OR, Operation.NOT), _logic),
    Operation.IS_NULL: lambda e, i, s: Typed(bool, False),
    Operation.IS_NAN: _rule_of(float, "needs a float", bool),
    **dict.fromkeys((Operation.ABS, Operation.FLOOR, Operation.CEIL), _same_number),
    **dict.fromkeys((Operation.WHEN, Operation.CHOOSE), _choice),
    Operation.MEMBER: _member,
    Operation.DATE_PART: _temporal(int),
    Operation.TRUNCATE: _temporal(datetime),
    Operation.DATE: _temporal(date),
    Operation.EPOCH: _temporal(int),
    Operation.OFFSET_BY: _may_be_null(_temporal(datetime)),
    Operation.FORMAT: _temporal(str),
    Operation.DISTINCT: _distinct,
    Operation.IS_IN: _is_in,
    Operation.FILL_NULL: _fill_null,
    Operation.CAST: _cast,
    Operation.LENGTH: _text(int),
    **dict.fromkeys(TEXT_CHANGES, _text(str)),
    **dict.fromkeys((Operation.CONTAINS, Operation.MATCHES, Operation.STARTS_WITH, Operation.ENDS_WITH), _text(bool)),
    Operation.EXTRACT: _may_be_null(_text(str)),
    Operation.SPLIT: _text(list[str]),
    Operation.TO_INTEGER: _may_be_null(_text(int)),
    Operation.DIGEST: _digest,
    Operation.LIST_LENGTH: _list_length,
    Operation.LIST_GET: lambda e, i, s: _item_type(e, i),
    Operation.LIST_CONTAINS: _list_contains,
    Operation.LIST_JOIN: _list_join,
    Operation.STRUCT: _struct,
    Operation.ROWS: lambda e, i, s: Typed(int, False),
    Operation.COUNT: lambda e, i, s: Typed(int, False),
    Operation.SUM: _number_aggregate,
    Operation.MIN: _order_aggregate,
    Operation.MAX: _order_aggregate,
    **dict.fromkeys(BY_ANOTHER, _by_another),
    Operation.QUANTILE: _quantile,
    Operation.APPROX_DISTINCT: _distinct,
    Operation.APPROX_QUANTILE: _approx_quantile,
    Operation.FIRST: lambda e, i, s: Typed(i[0].kind),
    Operation.LAST: lambda e, i, s: Typed(i[0].kind),
    Operation.COLLECT: _collect,
}

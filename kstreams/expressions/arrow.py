"""Expressions on Arrow columns, for the column path of the native engine.

The native engine does not use frames of narwhals, since batches are small: the overhead of a frame per operation is ten
times what the kernels of Arrow take for ten thousand rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import UnsupportedError
from kstreams.expressions.expression import Expr
from kstreams.expressions.functions import FIRST_MS, LAST_MS, UNITS
from kstreams.expressions.operations import Operation
from kstreams.expressions.python import as_function
from kstreams.expressions.types import Schema, type_of

Column: TypeAlias = pa.Array | pa.Scalar
"""The values of a batch; a scalar for an expression that reads no column."""

TYPES = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    datetime: pa.timestamp("us", "UTC"),
}


def compute(expr: Expr, columns: dict[str, Column]) -> Column:
    """Return the values of an expression: an Arrow array, or a scalar if it reads no column.

    Parameters
    ----------
    expr : Expr
        An expression without aggregations and structs.
    columns : dict of str to pyarrow array
        The columns that the expression reads, by the `repr` of the leaf. Intermediate results are added.

    Examples
    --------
    >>> from kstreams.expressions import value
    >>> compute(value % 3 == 0, {"ks.value": pa.array([3, -1, None])}).to_pylist()
    [True, False, None]
    """
    text = repr(expr)
    if text not in columns:
        if not expr.leaves:
            columns[text] = _constant(expr)
        else:
            columns[text] = _RULES[expr.operation](expr, *(compute(node, columns) for node in expr.inputs))
    return columns[text]


def _constant(expr: Expr) -> pa.Scalar:
    return pa.scalar(as_function(expr, ())(), TYPES.get(type_of(expr, Schema()).kind))


def _add(_: Expr, left: Column, right: Column) -> Column:
    return pc.binary_join_element_wise(left, right, "") if pa.types.is_string(left.type) else pc.add(left, right)


def _no_zeros(divisor: Column) -> Column:
    if isinstance(divisor, pa.Scalar):
        return pa.scalar(None, divisor.type) if divisor.as_py() == 0 else divisor
    return pc.if_else(pc.equal(divisor, 0), None, divisor)


def _divide(_: Expr, left: Column, right: Column) -> Column:
    return pc.divide(left.cast(pa.float64()), _no_zeros(right))


def _floor_divide(_: Expr, left: Column, right: Column) -> Column:
    divisor = _no_zeros(right)
    quotient = pc.divide(left, divisor)
    if pa.types.is_floating(quotient.type):
        return pc.floor(quotient)
    # Arrow rounds toward zero: subtract one if the signs differ and there is a remainder.
    inexact = pc.not_equal(pc.multiply(quotient, divisor), left)
    differ = pc.not_equal(pc.less(left, 0), pc.less(divisor, 0))
    return pc.subtract(quotient, pc.cast(pc.and_(inexact, differ), pa.int64()))


def _modulo(expr: Expr, left: Column, right: Column) -> Column:
    return pc.subtract(left, pc.multiply(_floor_divide(expr, left, right), right))


def _is_in(expr: Expr, column: Column) -> Column:
    is_member = pc.is_in(column, value_set=pa.array(expr.detail, column.type))
    return pc.if_else(pc.is_valid(column), is_member, None)


def _cast(expr: Expr, column: Column) -> Column:
    if expr.detail is datetime:
        return _to_datetime(expr, column)
    if pa.types.is_timestamp(column.type):
        return _to_ms(expr, column)
    if expr.detail is int and pa.types.is_floating(column.type):
        fits = pc.and_(pc.greater_equal(column, -(2.0**63)), pc.less(column, 2.0**63))
        column = pc.trunc(pc.if_else(fits, column, None))
    return column.cast(TYPES[expr.detail])


def _to_datetime(_: Expr, column: Column) -> Column:
    if pa.types.is_timestamp(column.type):
        return column
    fits = pc.and_(pc.greater_equal(column, FIRST_MS), pc.less_equal(column, LAST_MS))
    return pc.multiply(pc.if_else(fits, column, None), 1000).cast(TYPES[datetime])


def _to_ms(expr: Expr, column: Column) -> Column:
    return _floor_divide(expr, column.cast(pa.int64()), pa.scalar(1000))


def _truncate(expr: Expr, column: Column) -> Column:
    micros = column.cast(pa.int64())
    every = pa.scalar(expr.detail // timedelta(microseconds=1))
    since = pc.subtract(micros, _modulo(expr, micros, every))
    return pc.if_else(pc.greater_equal(since, FIRST_MS * 1000), since, None).cast(TYPES[datetime])


_LAST_US = LAST_MS * 1000 + 999


def _offset_by(expr: Expr, column: Column) -> Column:
    by = expr.detail // timedelta(microseconds=1)
    micros = column.cast(pa.int64())
    # Beyond this span no time has a sum within the years of a `datetime`.
    if abs(by) > _LAST_US - FIRST_MS * 1000:
        return pc.if_else(pc.is_valid(micros), None, micros).cast(TYPES[datetime])
    moved = pc.add(micros, by)
    fits = pc.and_(pc.greater_equal(moved, FIRST_MS * 1000), pc.less_equal(moved, _LAST_US))
    return pc.if_else(fits, moved, None).cast(TYPES[datetime])


def _epoch(expr: Expr, column: Column) -> Column:
    return _floor_divide(expr, column.cast(pa.int64()), pa.scalar(UNITS[expr.detail] // timedelta(microseconds=1)))


def _date_part(expr: Expr, column: Column) -> Column:
    return _DATE_PARTS[expr.detail](column)


_DATE_PARTS: dict[str, Callable[[Column], Column]] = {
    **{name: getattr(pc, name) for name in ("year", "month", "day", "hour", "minute", "second")},
    "millisecond": pc.millisecond,
    "microsecond": lambda column: pc.add(pc.multiply(pc.millisecond(column), 1000), pc.microsecond(column)),
    "quarter": pc.quarter,
    "week": pc.iso_week,
    "iso_year": pc.iso_year,
    "weekday": lambda column: pc.day_of_week(column, count_from_zero=False, week_start=1),
    "ordinal_day": pc.day_of_year,
}


def _whole(function: Callable[[Column], Column]) -> Callable[..., Column]:
    return lambda expr, column: function(column) if pa.types.is_floating(column.type) else column


def _choose(_: Expr, condition: Column, value: Column, other: Column | None = None) -> Column:
    return pc.if_else(pc.fill_null(condition, False), value, pa.scalar(None, value.type) if other is None else other)


def _slice(expr: Expr, column: Column) -> Column:
    offset, length = expr.detail
    return pc.utf8_slice_codeunits(column, offset, None if length is None else offset + length)


def _strip_prefix(expr: Expr, column: Column) -> Column:
    rest = pc.utf8_slice_codeunits(column, len(expr.detail))
    return pc.if_else(pc.starts_with(column, expr.detail), rest, column)


def _strip_suffix(expr: Expr, column: Column) -> Column:
    if not expr.detail:
        return column
    rest = pc.utf8_slice_codeunits(column, 0, -len(expr.detail))
    return pc.if_else(pc.ends_with(column, expr.detail), rest, column)


def _of_each(kind: pa.DataType | None) -> Callable[..., Column]:
    """Return the rule of an operation without an exact kernel: the Python function of each value.

    `kind` is the type of the results, or None if they are items of lists.
    """

    def rule(expr: Expr, column: Column) -> Column:
        function = _function_of_values(expr.operation, expr.detail)
        return pa.array(map(function, column.to_pylist()), column.type.value_type if kind is None else kind)

    return rule


@lru_cache(maxsize=256)
def _function_of_values(operation: Operation, detail: Any) -> Callable[[Any], Any]:
    return as_function(Expr(operation, (Expr(Operation.VALUE),), detail), ("value",))


def _digest(expr: Expr, column: Column) -> Column:
    return _of_each(pa.int64() if expr.detail == "crc32" else pa.string())(expr, column)


def _padded(function: Callable[..., Column]) -> Callable[..., Column]:
    return lambda expr, column: function(column, width=expr.detail[0], padding=expr.detail[1])


def _trimmed(function: Callable[..., Column]) -> Callable[..., Column]:
    return lambda expr, column: function(column, characters=expr.detail)


def _kernel(function: Callable[..., Column]) -> Callable[..., Column]:
    return lambda expr, *inputs: function(*inputs)


def _matching(function: Callable[..., Column]) -> Callable[..., Column]:
    return lambda expr, column: function(column, pattern=expr.detail)


def _not_a_column(expr: Expr, *_: object) -> Column:
    raise UnsupportedError(f"{expr!r} is not one column")


_RULES: dict[Operation, Callable[..., Column]] = {
    **dict.fromkeys((operation for operation in Operation if operation.is_leaf), _not_a_column),
    Operation.LITERAL: _constant,
    Operation.ADD: _add,
    Operation.SUBTRACT: _kernel(pc.subtract),
    Operation.MULTIPLY: _kernel(pc.multiply),
    Operation.DIVIDE: _divide,
    Operation.FLOOR_DIVIDE: _floor_divide,
    Operation.MODULO: _modulo,
    Operation.NEGATE: _kernel(pc.negate),
    Operation.EQUAL: _kernel(pc.equal),
    Operation.NOT_EQUAL: _kernel(pc.not_equal),
    Operation.LESS: _kernel(pc.less),
    Operation.LESS_EQUAL: _kernel(pc.less_equal),
    Operation.GREATER: _kernel(pc.greater),
    Operation.GREATER_EQUAL: _kernel(pc.greater_equal),
    Operation.AND: _kernel(pc.and_kleene),
    Operation.OR: _kernel(pc.or_kleene),
    Operation.NOT: _kernel(pc.invert),
    Operation.IS_NULL: _kernel(pc.is_null),
    Operation.IS_IN: _is_in,
    Operation.FILL_NULL: _kernel(pc.coalesce),
    Operation.IS_NAN: _kernel(pc.is_nan),
    Operation.ABS: _kernel(pc.abs),
    Operation.FLOOR: _whole(pc.floor),
    Operation.CEIL: _whole(pc.ceil),
    Operation.WHEN: _choose,
    Operation.CHOOSE: _choose,
    Operation.MEMBER: _not_a_column,
    Operation.DATE_PART: _date_part,
    Operation.TRUNCATE: _truncate,
    Operation.DATE: lambda expr, column: column.cast(pa.date32(), safe=False),
    Operation.EPOCH: _epoch,
    Operation.OFFSET_BY: _offset_by,
    Operation.FORMAT: _of_each(pa.string()),
    Operation.CAST: _cast,
    Operation.LENGTH: lambda expr, column: pc.utf8_length(column).cast(pa.int64()),
    Operation.UPPER: _kernel(pc.utf8_upper),
    Operation.LOWER: _kernel(pc.utf8_lower),
    Operation.TITLE: _of_each(pa.string()),
    Operation.REVERSE: _kernel(pc.utf8_reverse),
    Operation.CONTAINS: _matching(pc.match_substring),
    Operation.MATCHES: _of_each(pa.bool_()),
    Operation.STARTS_WITH: _matching(pc.starts_with),
    Operation.ENDS_WITH: _matching(pc.ends_with),
    Operation.SLICE: _slice,
    Operation.HEAD: lambda expr, column: pc.utf8_slice_codeunits(column, 0, expr.detail),
    Operation.TAIL: lambda expr, column: pc.utf8_slice_codeunits(column, -expr.detail),
    Operation.STRIP: _trimmed(pc.utf8_trim),
    Operation.STRIP_START: _trimmed(pc.utf8_ltrim),
    Operation.STRIP_END: _trimmed(pc.utf8_rtrim),
    Operation.STRIP_PREFIX: _strip_prefix,
    Operation.STRIP_SUFFIX: _strip_suffix,
    Operation.PAD_START: _padded(pc.utf8_lpad),
    Operation.PAD_END: _padded(pc.utf8_rpad),
    Operation.ZFILL: _of_each(pa.string()),
    Operation.REPLACE: lambda expr, column: pc.replace_substring(column, *expr.detail),
    Operation.REPLACE_MATCHES: _of_each(pa.string()),
    Operation.EXTRACT: _of_each(pa.string()),
    Operation.SPLIT: lambda expr, column: pc.split_pattern(column, expr.detail),
    Operation.TO_INTEGER: _of_each(pa.int64()),
    Operation.DIGEST: _digest,
    Operation.LIST_LENGTH: lambda expr, column: pc.list_value_length(column).cast(pa.int64()),
    Operation.LIST_GET: _of_each(None),
    Operation.LIST_CONTAINS: _of_each(pa.bool_()),
    Operation.LIST_JOIN: _of_each(pa.string()),
    Operation.STRUCT: _not_a_column,
    **dict.fromkeys((operation for operation in Operation if operation.is_aggregation), _not_a_column),
}

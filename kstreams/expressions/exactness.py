"""Checks that columns compute exactly what Python computes.

Integers of Arrow wrap around, its text kernels know one-to-one case mappings only, and an integer becomes a double in
an operation with a double. Each node of an expression gets the range of its integers, from the minimum and maximum of
the columns. If a range is not exact in columns, the batch takes the record path.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.expressions.expression import Expr
from kstreams.expressions.operations import Operation
from kstreams.expressions.types import TEXT_CHANGES

Range: TypeAlias = "tuple[int, int] | None"
"""The least and the greatest integer; None for other types (floats, text, booleans)."""

INT64 = (-(2**63), 2**63 - 1)
DOUBLE = (-(2**53), 2**53)


class Inexact(Exception):
    """A result that columns cannot hold, but Python can."""


def range_of(expr: Expr, column: Callable[[Expr], Any]) -> Range:
    """Return the range of an expression over a batch.

    Parameters
    ----------
    expr : Expr
        An expression without aggregations.
    column : callable
        Returns the Arrow column of a leaf.

    Raises
    ------
    Inexact
        If the result of an operation may not be exact in columns.

    Examples
    --------
    >>> from kstreams.expressions import value
    >>> range_of(value * 10 - 1, lambda leaf: pa.array([1, None, 5]))
    (9, 49)
    """
    return _RULES[expr.operation](expr, [range_of(node, column) for node in expr.inputs], column)


def range_of_column(column: Any) -> Range:
    """Return the minimum and maximum of an integer column, (0, 0) if it has no values; None for other columns."""
    if not pa.types.is_integer(column.type):
        return None
    bounds = pc.min_max(column).as_py()
    return (bounds["min"] or 0, bounds["max"] or 0)


def _within(span: tuple[int, int], limits: tuple[int, int]) -> tuple[int, int]:
    if span[0] < limits[0] or span[1] > limits[1]:
        raise Inexact(f"{span} leaves {limits}")
    return span


Rule = Callable[[Expr, list[Range], Callable[[Expr], Any]], Range]


def _leaf(expr: Expr, _: list[Range], column: Callable[[Expr], Any]) -> Range:
    return range_of_column(column(expr))


def _literal(expr: Expr, *_: object) -> Range:
    return (expr.detail, expr.detail) if type(expr.detail) is int else None


def _integers(corners: Callable[[tuple[int, int], tuple[int, int]], list[int]]) -> Rule:
    """Return a rule for two numbers: integers by the corners of their ranges; with a float, they must fit a double."""

    def rule(_: Expr, inputs: list[Range], __: object) -> Range:
        left, right = inputs
        if left is not None and right is not None:
            results = corners(left, right)
            return _within((min(results), max(results)), INT64)
        return _as_doubles(inputs)

    return rule


def _as_doubles(inputs: list[Range]) -> Range:
    for span in inputs:
        if span is not None:
            _within(span, DOUBLE)
    return None


def _quotient(left: tuple[int, int], right: tuple[int, int]) -> list[int]:
    largest = max(map(abs, left))
    return [-largest - 1, largest]


def _remainder(left: tuple[int, int], right: tuple[int, int]) -> list[int]:
    # The remainder is computed as left - (left // right) * right: the product must fit as well.
    largest = max(map(abs, left)) + max(map(abs, right))
    return [-largest, largest]


def _comparison(_: Expr, inputs: list[Range], __: object) -> Range:
    return _as_doubles(inputs) if None in inputs else None


def _ascii(expr: Expr, _: list[Range], column: Callable[[Expr], Any]) -> Range:
    for leaf in expr.leaves:
        texts = column(leaf)
        if pa.types.is_string(texts.type) and not pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
            raise Inexact("Arrow maps the case of each code point alone")
    if not all(str(node.detail).isascii() for node in expr.walk() if not node.operation.is_leaf):
        raise Inexact("Arrow maps the case of each code point alone")
    return None


def _cast(expr: Expr, inputs: list[Range], _: object) -> Range:
    span = inputs[0]
    if expr.detail is datetime:
        return None
    if expr.detail is int:
        return INT64 if span is None else span
    return None if span is None or expr.detail is str else _as_doubles([_within(span, DOUBLE)])


def _choose(expr: Expr, inputs: list[Range], column: object) -> Range:
    return _fill_null(expr, inputs[1:], column)


def _abs(_: Expr, inputs: list[Range], __: object) -> Range:
    span = inputs[0]
    return None if span is None else _within((0, max(map(abs, span))), INT64)


def _fill_null(_: Expr, inputs: list[Range], __: object) -> Range:
    spans = [span for span in inputs if span is not None]
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None


def _nothing(*_: object) -> Range:
    return None


_RULES: dict[Operation, Rule] = {
    **dict.fromkeys((operation for operation in Operation if operation.is_leaf), _leaf),
    Operation.LITERAL: _literal,
    Operation.ADD: _integers(lambda a, b: [a[0] + b[0], a[1] + b[1]]),
    Operation.SUBTRACT: _integers(lambda a, b: [a[0] - b[1], a[1] - b[0]]),
    Operation.MULTIPLY: _integers(lambda a, b: [x * y for x in a for y in b]),
    Operation.DIVIDE: lambda expr, inputs, column: _as_doubles(inputs),
    Operation.FLOOR_DIVIDE: _integers(_quotient),
    Operation.MODULO: _integers(_remainder),
    Operation.NEGATE: lambda expr, inputs, column: (
        None if inputs[0] is None else _within((-inputs[0][1], -inputs[0][0]), INT64)
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
    **dict.fromkeys((Operation.AND, Operation.OR, Operation.NOT, Operation.IS_NULL, Operation.IS_IN), _nothing),
    Operation.FILL_NULL: _fill_null,
    Operation.ABS: _abs,
    **dict.fromkeys((Operation.FLOOR, Operation.CEIL), lambda expr, inputs, column: inputs[0]),
    **dict.fromkeys((Operation.WHEN, Operation.CHOOSE), _choose),
    Operation.DATE_PART: lambda expr, inputs, column: (0, 999_999),
    Operation.EPOCH: lambda expr, inputs, column: (-(2**58), 2**58),
    Operation.DIGEST: lambda expr, inputs, column: (0, 2**32) if expr.detail == "crc32" else None,
    Operation.TO_INTEGER: lambda expr, inputs, column: INT64,
    Operation.LIST_LENGTH: lambda expr, inputs, column: (0, 2**31),
    Operation.CAST: _cast,
    Operation.LENGTH: lambda expr, inputs, column: (0, 2**31),
    **dict.fromkeys((Operation.UPPER, Operation.LOWER), _ascii),
    **dict.fromkeys(set(TEXT_CHANGES) - {Operation.UPPER, Operation.LOWER}, _nothing),
    **dict.fromkeys((Operation.CONTAINS, Operation.MATCHES, Operation.STARTS_WITH, Operation.ENDS_WITH), _nothing),
    **dict.fromkeys((Operation.EXTRACT, Operation.SPLIT, Operation.IS_NAN, Operation.TRUNCATE), _nothing),
    **dict.fromkeys((Operation.LIST_GET, Operation.LIST_CONTAINS, Operation.LIST_JOIN), _nothing),
    **dict.fromkeys((Operation.DATE, Operation.OFFSET_BY, Operation.FORMAT), _nothing),
    **dict.fromkeys((Operation.MEMBER, Operation.STRUCT), _nothing),
    **dict.fromkeys((operation for operation in Operation if operation.is_aggregation), _nothing),
}

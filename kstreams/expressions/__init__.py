"""Expressions: computations on records as data, with equal results for records, for columns and on Spark."""

from kstreams.expressions.aggregation import Aggregation, aggregation, counting, merging
from kstreams.expressions.expression import Expr, literal
from kstreams.expressions.operations import Operation
from kstreams.expressions.python import as_function
from kstreams.expressions.row_aggregation import RowAggregation, row_aggregation
from kstreams.expressions.struct_class import gives_struct, plain_type, struct_class
from kstreams.expressions.types import Schema, Typed, fields_of, type_of
from kstreams.expressions.vocabulary import (
    coalesce,
    col,
    header,
    headers,
    key,
    left,
    offset,
    partition,
    right,
    rows,
    struct,
    timestamp,
    topic,
    value,
    when,
    window_end,
    window_start,
)

lit = literal
len = rows


def result_type(expr: Expr, key: object = None, value: object = None, right: object = None) -> object:
    """Return the Python type of an expression; None if it is not known.

    Examples
    --------
    >>> from kstreams import expressions as ks
    >>> ks.result_type(ks.value + 1, value=int)
    int | None
    """
    from typing import Any

    result = type_of(expr, Schema(key, value, right))
    return None if result.kind is Any else result.annotation


__all__ = [
    "Aggregation",
    "Expr",
    "Operation",
    "RowAggregation",
    "Schema",
    "Typed",
    "aggregation",
    "as_function",
    "coalesce",
    "col",
    "counting",
    "fields_of",
    "gives_struct",
    "header",
    "headers",
    "key",
    "left",
    "len",
    "lit",
    "literal",
    "merging",
    "offset",
    "partition",
    "plain_type",
    "result_type",
    "right",
    "row_aggregation",
    "rows",
    "struct",
    "struct_class",
    "timestamp",
    "topic",
    "type_of",
    "value",
    "when",
    "window_end",
    "window_start",
]

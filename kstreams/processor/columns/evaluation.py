"""`Evaluation`: computes the expressions of a region over the columns of a batch, or refuses inexact results."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kstreams.expressions import Expr, Operation
from kstreams.expressions.arrow import compute
from kstreams.expressions.exactness import range_of
from kstreams.processor.columns.source_columns import Columns


class Evaluation:
    """The distinct expressions of a region, each computed once per batch.

    Parameters
    ----------
    expressions : sequence of Expr
        Expressions over a source's columns.
    """

    def __init__(self, expressions: Sequence[Expr]) -> None:
        distinct = {repr(expr): expr for expr in expressions}
        self._computed = {text: expr for text, expr in distinct.items() if not expr.operation.is_leaf}

    def compute(self, columns: Columns) -> Columns:
        """Return `columns` and the columns of the expressions, by the `repr` of the expression.

        Raises
        ------
        Inexact
            If columns would give other results than Python for this batch.
        """
        for expr in self._computed.values():
            range_of(expr, lambda leaf: columns[repr(leaf)])
        values: dict[str, object] = dict(columns)
        for text, expr in self._computed.items():
            result = compute(expr, values)
            if isinstance(result, pa.Scalar):
                values[text] = pa.repeat(result, len(columns["ks.timestamp"]))
        return values


def columns_needed(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions to compute for a key or value: for a struct its fields, from which objects are built."""
    return expr.inputs if is_struct(expr) else (expr,)


def is_struct(expr: Expr) -> bool:
    """Return whether an expression is a `ks.struct`, from which objects are built."""
    return expr.operation is Operation.STRUCT

"""`Evaluation`: the expressions of a region computed over the columns of a batch, or refused as inexact."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kstreams.expressions import Expr, Operation
from kstreams.expressions.arrow import compute
from kstreams.expressions.exactness import range_of
from kstreams.processor.columns.source_columns import Columns


class Evaluation:
    """Computes expressions, each once.

    Parameters
    ----------
    expressions : sequence of Expr
        Over a source's columns.
    """

    def __init__(self, expressions: Sequence[Expr]) -> None:
        distinct = {repr(expr): expr for expr in expressions}
        self._computed = {text: expr for text, expr in distinct.items() if not expr.operation.is_leaf}

    def compute(self, columns: Columns) -> Columns:
        """The given columns and those of the expressions, by what `repr` shows.

        Raises
        ------
        Inexact
            When columns would not give what Python gives for this batch.
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
    """What to compute for a key or value: of a struct its fields one by one, since objects are built of them."""
    return expr.inputs if is_struct(expr) else (expr,)


def is_struct(expr: Expr) -> bool:
    """Whether an expression is a `ks.struct`, of which objects are built."""
    return expr.operation is Operation.STRUCT

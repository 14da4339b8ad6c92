"""`Evaluation`: expressions of a region computed over the columns of a batch, in one pass, or refused as inexact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kstreams.expressions import Expr, Operation, Schema
from kstreams.expressions.exactness import range_of
from kstreams.expressions.frame import to_narwhals
from kstreams.processor.columns.source_columns import Columns


class Evaluation:
    """Computes expressions, each once.

    Parameters
    ----------
    expressions : sequence of Expr
        Over a source's columns.
    schema : Schema
        Types of the source's key and value.
    """

    def __init__(self, expressions: Sequence[Expr], schema: Schema) -> None:
        distinct = {repr(expr): expr for expr in expressions}
        self._computed = {shown: expr for shown, expr in distinct.items() if not expr.operation.is_leaf}
        self._schema = schema
        self._selection: list[Any] | None = None

    def compute(self, columns: Columns) -> Columns:
        """The given columns and those of the expressions, by what `repr` shows.

        Raises
        ------
        Inexact
            When columns would not give what Python gives for this batch.
        """
        if not self._computed:
            return columns
        import narwhals as nw

        for expr in self._computed.values():
            range_of(expr, lambda leaf: columns[repr(leaf)])
        if self._selection is None:
            self._selection = [self._lowered(shown, expr) for shown, expr in self._computed.items()]
        frame = nw.from_native(pa.table(columns), eager_only=True).with_columns(*self._selection)
        computed = frame.to_native()
        return {shown: _one_chunk(computed[shown]) for shown in (*columns, *self._computed)}

    def _lowered(self, shown: str, expr: Expr) -> Any:
        import narwhals as nw

        return to_narwhals(expr, lambda leaf: nw.col(repr(leaf)), self._schema).alias(shown)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def columns_needed(expr: Expr) -> tuple[Expr, ...]:
    """The expressions to compute for a value: the fields of a struct one by one, since rows are built of them."""
    return expr.inputs if expr.operation is Operation.STRUCT else (expr,)

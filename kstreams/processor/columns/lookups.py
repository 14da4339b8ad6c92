"""Lookups as data: the expressions over the rows that an operator looks up in a table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.expressions import Expr, Operation, Schema, Typed, col, type_of, value
from kstreams.expressions.arrow import TYPES


@dataclass(frozen=True, slots=True)
class OfRow:
    """A column of the rows that a step looks up: the expression `read` over the row as `ks.value`."""

    step: str
    read: Expr
    row: object

    @property
    def kind(self) -> Typed:
        """The type of the column; null if there is no row."""
        return type_of(self.read, Schema(value=self.row))

    def __str__(self) -> str:
        return f"{self.step}[{self.read!r}]"


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A step that looks up rows.

    Parameters
    ----------
    step : str
        The name of the step.
    place : Expr
        The key of the row, an expression over the columns before this step.
    where : Expr or None
        The condition under which a record reaches this step; None if all do.
    """

    step: str
    place: Expr
    where: Expr | None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions that must be computed before the lookup."""
        return (self.place,) if self.where is None else (self.place, self.where)


def of_row(step: str, read: Expr, row: object) -> Expr:
    """Return the column `read` of the rows of a step, which have type `row`.

    Examples
    --------
    >>> of_row("JOIN", col("rate") * 2, dict[str, float])
    JOIN[(ks.col('rate') * 2)]
    """
    return Expr(Operation.COLUMN, (), OfRow(step, read, row))


def reading_rows(expr: Expr, step: str, row: object) -> Expr:
    """Return a join's projection with the columns of a step in place of `ks.right`."""
    if expr.operation is Operation.RIGHT:
        return of_row(step, value, row)
    if expr.operation is Operation.RIGHT_FIELD:
        return of_row(step, col(expr.detail), row)
    return Expr(expr.operation, tuple(reading_rows(node, step, row) for node in expr.inputs), expr.detail)


def arrow_type(column: OfRow) -> pa.DataType:
    """Return the Arrow type of a column. Raises SerdeError if it has no columnar form."""
    arrow_type = TYPES.get(column.kind.kind)
    if arrow_type is None:
        raise SerdeError(f"{column} is a {column.kind.kind}, which has no columnar form")
    return arrow_type

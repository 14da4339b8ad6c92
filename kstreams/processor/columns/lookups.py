"""Lookups as data: what expressions read of the rows that an operator looks up in a table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.expressions import Expr, Operation, Schema, Typed, col, type_of, value
from kstreams.expressions.arrow import TYPES


@dataclass(frozen=True, slots=True)
class OfRow:
    """What a column holds of the rows that a step looks up: `read`, over the row as `ks.value`."""

    step: str
    read: Expr
    row: object

    @property
    def kind(self) -> Typed:
        """Its type; null where there is no row."""
        return type_of(self.read, Schema(value=self.row))

    def __str__(self) -> str:
        return f"{self.step}[{self.read!r}]"


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """One step that looks rows up.

    Parameters
    ----------
    step : str
        Its name.
    place : Expr
        The key of the row, over the columns before.
    where : Expr or None
        Which records get so far; None is all.
    """

    step: str
    place: Expr
    where: Expr | None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """What must be computed before."""
        return (self.place,) if self.where is None else (self.place, self.where)


def of_row(step: str, read: Expr, row: object) -> Expr:
    """The column of what a step reads of its rows, of type `row`.

    Examples
    --------
    >>> of_row("JOIN", col("rate") * 2, dict[str, float])
    JOIN[(ks.col('rate') * 2)]
    """
    return Expr(Operation.COLUMN, (), OfRow(step, read, row))


def reading_rows(expr: Expr, step: str, row: object) -> Expr:
    """A join's projection with the columns of a step in the place of `ks.right`."""
    if expr.operation is Operation.RIGHT:
        return of_row(step, value, row)
    if expr.operation is Operation.RIGHT_FIELD:
        return of_row(step, col(expr.detail), row)
    return Expr(expr.operation, tuple(reading_rows(node, step, row) for node in expr.inputs), expr.detail)


def arrow_type(column: OfRow) -> pa.DataType:
    """Of the column; raises SerdeError when it has no columnar form."""
    arrow_type = TYPES.get(column.kind.kind)
    if arrow_type is None:
        raise SerdeError(f"{column} is a {column.kind.kind}, which has no columnar form")
    return arrow_type

"""Lookups: rows of tables as columns beside those of a source, each key of a batch looked up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import SerdeError
from kstreams.expressions import Expr, Operation, Schema, Typed, as_function, col, type_of, value
from kstreams.expressions.arrow import TYPES
from kstreams.processor.columns.evaluation import Evaluation
from kstreams.processor.columns.source_columns import Columns
from kstreams.processor.context.table_view import ValueGetter


@dataclass(frozen=True, slots=True)
class OfRow:
    """What a column holds of the rows that a step looks up: `read`, over the row as `ks.value`."""

    step: str
    read: Expr
    row: Any

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


def of_row(step: str, read: Expr, row: Any) -> Expr:
    """The column of what a step reads of its rows, of type `row`.

    Examples
    --------
    >>> of_row("JOIN", col("rate") * 2, dict[str, float])
    JOIN[(ks.col('rate') * 2)]
    """
    return Expr(Operation.COLUMN, (), OfRow(step, read, row))


def reading_rows(expr: Expr, step: str, row: Any) -> Expr:
    """A join's projection with the columns of a step in the place of `ks.right`."""
    if expr.operation is Operation.RIGHT:
        return of_row(step, value, row)
    if expr.operation is Operation.RIGHT_FIELD:
        return of_row(step, col(expr.detail), row)
    return Expr(expr.operation, tuple(reading_rows(node, step, row) for node in expr.inputs), expr.detail)


class LiveLookup:
    """Adds the columns of one lookup to those of a batch.

    Parameters
    ----------
    lookup : Lookup
    leaves : iterable of Expr
        All that is read in the region.
    get : ValueGetter
        Of the table.

    Raises
    ------
    SerdeError
        When what is read of the rows has no columnar form.
    """

    def __init__(self, lookup: Lookup, leaves: Iterable[Expr], get: ValueGetter) -> None:
        self._lookup, self._get = lookup, get
        self._evaluation = Evaluation(lookup.expressions)
        self._reads = [(repr(leaf), *_reader(leaf.detail)) for leaf in leaves if _is_of(leaf, lookup.step)]

    def add(self, columns: Columns) -> Columns:
        """The columns with those of the rows that are found now; raises ArrowException for what they do not hold."""
        columns = self._evaluation.compute(columns)
        places = columns[repr(self._lookup.place)]
        if self._lookup.where is not None:
            places = pc.if_else(pc.fill_null(columns[repr(self._lookup.where)], False), places, None)
        encoded = places.dictionary_encode()
        found = [self._get(key) for key in encoded.dictionary.to_pylist()]
        rows = [None if row is None else row[0] for row in found]
        for name, read, kind in self._reads:
            columns[name] = pa.array(list(map(read, rows)), kind).take(encoded.indices)
        return columns


def _is_of(leaf: Expr, step: str) -> bool:
    return leaf.operation is Operation.COLUMN and leaf.detail.step == step


def _reader(column: OfRow) -> tuple[Callable[[Any], Any], pa.DataType]:
    return as_function(column.read, ("value",), value=column.row), arrow_type(column)


def arrow_type(column: OfRow) -> pa.DataType:
    """Of the column; raises SerdeError when it has no columnar form."""
    found = TYPES.get(column.kind.kind)
    if found is None:
        raise SerdeError(f"{column} is a {column.kind.kind}, which has no columnar form")
    return found

"""The columnar form of a lookup join: rows of a table become columns; each key of a batch is looked up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.expressions import Expr, Operation, as_function
from kstreams.processor.columns.evaluation import Evaluation
from kstreams.processor.columns.lookups import Lookup, OfRow, arrow_type
from kstreams.processor.columns.source_columns import Columns
from kstreams.processor.context.table_view import ValuesGetter


class LiveLookup:
    """Adds the columns of one lookup to those of a batch.

    Parameters
    ----------
    lookup : Lookup
    leaves : iterable of Expr
        All that is read in the region.
    get_values : ValuesGetter
        Of the table.

    Raises
    ------
    SerdeError
        When what is read of the rows has no columnar form.
    """

    def __init__(self, lookup: Lookup, leaves: Iterable[Expr], get_values: ValuesGetter) -> None:
        self._lookup = lookup
        self._get_values = get_values
        self._evaluation = Evaluation(lookup.expressions)
        self._reads = [(repr(leaf), *_reader(leaf.detail)) for leaf in leaves if _is_of(leaf, lookup.step)]

    def add(self, columns: Columns) -> Columns:
        """The columns with those of the rows that are found now; raises ArrowException for what they do not hold."""
        columns = self._evaluation.compute(columns)
        places = columns[repr(self._lookup.place)]
        if self._lookup.where is not None:
            places = pc.if_else(pc.fill_null(columns[repr(self._lookup.where)], False), places, None)
        encoded = places.dictionary_encode()
        rows = self._get_values(encoded.dictionary.to_pylist())
        for name, read, kind in self._reads:
            columns[name] = pa.array(list(map(read, rows)), kind).take(encoded.indices)
        return columns


def _is_of(leaf: Expr, step: str) -> bool:
    return leaf.operation is Operation.COLUMN and leaf.detail.step == step


def _reader(column: OfRow) -> tuple[Callable[[Any], Any], pa.DataType]:
    return as_function(column.read, ("value",), value=column.row), arrow_type(column)

"""`Selected`: the rows of a batch that one way through a region lets through."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kstreams.batch import Batch
from kstreams.expressions import Expr
from kstreams.processor.columns.source_columns import Columns
from kstreams.processor.columns.windowing import Integers


class Selected:
    """Columns of a batch, filtered when they are asked for.

    Parameters
    ----------
    batch : Batch
        The records.
    columns : dict
        All that was computed of them.
    where : Expr or None
        Which of the columns says what goes through.
    """

    __slots__ = ("_batch", "_columns", "_mask", "_places")

    def __init__(self, batch: Batch, columns: Columns, where: Expr | None) -> None:
        self._batch, self._columns = batch, columns
        self._mask: pa.Array | None = None
        self._places: pa.Array | None = None
        if where is not None:
            self._mask = columns[repr(where)].fill_null(False)

    def of(self, expr: Expr) -> pa.Array:
        """The values of an expression; a literal has one for every row."""
        return self._through(self._columns[repr(expr)])

    def of_timestamps(self) -> pa.Array:
        """Event times in milliseconds."""
        return self._through(self._batch.timestamps)

    def times(self) -> Integers:
        """Event times in milliseconds, as numpy."""
        times: Integers = self.of_timestamps().to_numpy()
        return times

    def headers(self) -> pa.Array | None:
        """Headers, None when no record of the batch has any."""
        return None if self._batch.headers is None else self._through(self._batch.headers)

    def last_row(self) -> int:
        """Position in the batch of the last row that goes through, -1 when there is none."""
        if self._mask is None:
            return len(self._batch) - 1
        found = np.flatnonzero(self._mask.to_numpy(zero_copy_only=False))
        return int(found[-1]) if len(found) else -1

    def _through(self, column: pa.Array) -> pa.Array:
        return column if self._mask is None else column.filter(self._mask)

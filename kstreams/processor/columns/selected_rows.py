"""`SelectedRows`: the rows of a batch that pass the filters of one path through a region."""

from __future__ import annotations

import pyarrow as pa

from kstreams.expressions import Expr
from kstreams.kernel.batch import Batch, rows_of_headers
from kstreams.processor.columns.source_columns import Columns
from kstreams.processor.columns.windowing import Integers, stream_times
from kstreams.record import Headers


class SelectedRows:
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

    __slots__ = ("_columns", "_mask", "batch")

    def __init__(self, batch: Batch, columns: Columns, where: Expr | None) -> None:
        self.batch = batch
        self._columns = columns
        self._mask: pa.Array | None = None
        if where is not None:
            self._mask = columns[repr(where)].fill_null(False)

    def __len__(self) -> int:
        return len(self.batch) if self._mask is None else self._mask.true_count

    def of(self, expr: Expr) -> pa.Array:
        """The values of an expression; a literal has one for every row."""
        return self._through(self._columns[repr(expr)])

    def of_timestamps(self) -> pa.Array:
        """Event times in milliseconds."""
        return self._through(self.batch.timestamps)

    def times(self) -> Integers:
        """Event times in milliseconds, as numpy."""
        times: Integers = self.of_timestamps().to_numpy()
        return times

    def stream_times(self, before: int) -> Integers:
        """The stream time (ms) at each row, `before` the batch at first: records that do not come through count too."""
        return self._of_each(stream_times(self.batch.timestamps.to_numpy(), before))

    def reached(self, before: int) -> Integers:
        """How far the task has come with each row (`CurrentRecord.reached`), `before` the batch at first."""
        return self._of_each(stream_times(self.batch.places, before))

    def headers(self) -> pa.Array | None:
        """Headers, None when no record of the batch has any."""
        return None if self.batch.headers is None else self._through(self.batch.headers)

    def header_rows(self) -> list[Headers] | None:
        """Headers as tuples, None when no record of the batch has any."""
        headers = self.headers()
        return None if headers is None else rows_of_headers(headers)

    def offsets(self) -> Integers:
        """The offset of each row."""
        return self._of_each(self.batch.offsets)

    def raw_keys(self) -> pa.Array:
        """Keys, still serialized."""
        return self._through(self.batch.keys)

    def raw_values(self) -> pa.Array:
        """Values, still serialized."""
        return self._through(self.batch.values)

    def _of_each(self, numbers: Integers) -> Integers:
        return numbers if self._mask is None else numbers[self._mask.to_numpy(zero_copy_only=False)]

    def _through(self, column: pa.Array) -> pa.Array:
        return column if self._mask is None else column.filter(self._mask)

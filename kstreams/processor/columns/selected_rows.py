"""`SelectedRows`: the rows of a batch that pass the filters of one path through a region."""

from __future__ import annotations

import pyarrow as pa

from kstreams.expressions import Expr
from kstreams.kernel.batch import Batch, Integers, rows_of_headers
from kstreams.kernel.timestamps import stream_times
from kstreams.processor.columns.source_columns import Columns
from kstreams.record import Headers


class SelectedRows:
    """The columns of a batch, filtered when they are read.

    Parameters
    ----------
    batch : Batch
        The unfiltered records.
    columns : dict
        The computed columns of the batch.
    where : Expr or None
        The expression whose column selects the rows; None selects all rows.
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
        """Return the values of an expression; a literal has one value for every row."""
        return self._selected_column(self._columns[repr(expr)])

    def of_timestamps(self) -> pa.Array:
        """Return the event times in milliseconds."""
        return self._selected_column(self.batch.timestamps)

    def times(self) -> Integers:
        """Return the event times in milliseconds as a numpy array."""
        times: Integers = self.of_timestamps().to_numpy()
        return times

    def stream_times(self, before: int) -> Integers:
        """Return the stream time (ms) at each row; it is `before` at the start, and filtered rows advance it too."""
        return self._selected(stream_times(self.batch.timestamps.to_numpy(), before))

    def reached(self, before: int) -> Integers:
        """Return the progress of the task at each row (`CurrentRecord.reached`); it is `before` at the start."""
        return self._selected(stream_times(self.batch.places, before))

    def headers(self) -> pa.Array | None:
        """Return the headers; None if no record of the batch has any."""
        return None if self.batch.headers is None else self._selected_column(self.batch.headers)

    def header_rows(self) -> list[Headers] | None:
        """Return the headers as tuples; None if no record of the batch has any."""
        headers = self.headers()
        return None if headers is None else rows_of_headers(headers)

    def offsets(self) -> Integers:
        """Return the offset of each row."""
        return self._selected(self.batch.offsets)

    def raw_keys(self) -> pa.Array:
        """Return the serialized keys."""
        return self._selected_column(self.batch.keys)

    def raw_values(self) -> pa.Array:
        """Return the serialized values."""
        return self._selected_column(self.batch.values)

    def _selected(self, numbers: Integers) -> Integers:
        return numbers if self._mask is None else numbers[self._mask.to_numpy(zero_copy_only=False)]

    def _selected_column(self, column: pa.Array) -> pa.Array:
        return column if self._mask is None else column.filter(self._mask)

"""`BatchTarget`: where a region ends at a function over batches: it gets the columns as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa

from kstreams.processor.columns.projected_rows import ProjectedRows
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.columns.target import Target
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.record_cursor import HeldRecord, RecordCursor
from kstreams.processor.operators.map_batch.rows import BatchedRecords, Failed
from kstreams.processor.topology.nodes import SourceNode


class BatchTarget:
    """The end of a path through a region at a function over batches; its results are forwarded as rows.

    Parameters
    ----------
    target : Target
        What arrives at the function's step.
    source : SourceNode
        Where the records come from.
    gathered : BatchedRecords
        What the step does with batches, and with records that come one by one.
    current : CurrentRecord
        Of the task.
    """

    takes_headers = True

    def __init__(self, target: Target, source: SourceNode, gathered: BatchedRecords, current: CurrentRecord) -> None:
        self._target = target
        self._rows = ProjectedRows(target.view, source)
        self._gathered = gathered
        self._current = current

    def prepare(self, selected: SelectedRows) -> Callable[[], None]:
        """Put the columns together; what is returned calls the function and forwards its results."""
        frames = self._gathered.operator.frames
        target = self._target
        columns = dict(zip(frames.fields or ("value",), map(selected.of, target.values), strict=True))
        table = frames.table_of(columns, lambda: selected.of(target.view.key), selected.of_timestamps)
        records = _Records(selected, self._rows, self._current)
        return lambda: self._run(table, records)

    def complete(self) -> None:
        """Nothing is held back."""

    def _run(self, table: pa.Table, records: _Records) -> None:
        gathered = self._gathered
        most = self._gathered.operator.max_rows
        gathered.release_all()  # what came record by record was here before
        for start in range(0, len(table), most):
            values = gathered.operator.values_of(table.slice(start, most))
            gathered.forward_all((records.at(row, value), value) for row, value in enumerate(values, start))


class _Records:
    """The records of a path as they are forwarded; their old values are made for error handlers alone."""

    def __init__(self, selected: SelectedRows, rows: ProjectedRows, current: CurrentRecord) -> None:
        self._selected = selected
        self._view = rows
        self._keys = rows.keys(selected)
        self._timestamps = selected.times().tolist()
        self._offsets = selected.offsets()
        self._stream_times = selected.stream_times(current.stream_time)
        self._reached = selected.reached(current.reached).tolist()
        self._headers = selected.header_rows()

    def at(self, row: int, value: Any) -> HeldRecord:
        """One of them, for which the function gave a value."""
        old = self._values[row] if isinstance(value, Failed) else None
        headers = () if self._headers is None else self._headers[row]
        cursor = RecordCursor(self._selected.batch, self._offsets[row : row + 1], self._stream_times[row : row + 1], [])
        return HeldRecord(self._keys[row], old, self._timestamps[row], headers, cursor, self._reached[row])

    @cached_property
    def _values(self) -> list[Any]:
        return self._view.values(self._selected)

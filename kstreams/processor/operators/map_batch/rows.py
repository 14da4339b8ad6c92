"""A function over batches of records: it returns one value for each record, which is forwarded in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from kstreams.processor.columns.projection import Target
from kstreams.processor.columns.selected_rows import ProjectedRows, SelectedRows
from kstreams.processor.context.current_record import CurrentRecord, DelayedRecord, RecordCursor
from kstreams.processor.context.delayed_results import DelayedResults
from kstreams.processor.context.operator_context import ClosureOperator, ColumnHandle, OperatorContext, bind_operator
from kstreams.processor.operators.map_batch.frames import Frames
from kstreams.processor.operators.map_batch.results import rows_of
from kstreams.processor.operators.stateless import MapValuesOperator
from kstreams.processor.topology.nodes import SourceNode
from kstreams.processor.topology.operator import Forward


class BatchTarget:
    """A function over batches at the end of a path through a region. Its results are forwarded as rows.

    Parameters
    ----------
    target : Target
        The columns that arrive at the function.
    source : SourceNode
        The source of the records.
    buffer : BatchBuffer
        The buffer of the function's operator.
    current : CurrentRecord
        The current record of the task.
    """

    takes_headers = True

    def __init__(self, target: Target, source: SourceNode, buffer: BatchBuffer, current: CurrentRecord) -> None:
        self._target = target
        self._rows = ProjectedRows(target.view, source)
        self._buffer = buffer
        self._current = current

    def prepare(self, selected: SelectedRows) -> Callable[[], None]:
        """Collect the columns, and return a function that calls the user's function and forwards its results."""
        frames = self._buffer.operator.frames
        target = self._target
        columns = dict(zip(frames.fields or ("value",), map(selected.of, target.values), strict=True))
        table = frames.table_of(columns, lambda: selected.of(target.view.key), selected.of_timestamps)
        records = _Records(selected, self._rows, self._current)
        return lambda: self._run(table, records)

    def complete(self) -> None:
        """Do nothing: this target holds no records back."""

    def _run(self, table: pa.Table, records: _Records) -> None:
        buffer = self._buffer
        max_rows = buffer.operator.max_rows
        buffer.release_all()  # held records came before this table
        for start in range(0, len(table), max_rows):
            values = buffer.operator.values_of(table.slice(start, max_rows))
            buffer.forward_all((records.at(row, value), value) for row, value in enumerate(values, start))


class _Records:
    """The records of a path, to be forwarded. Their old values are computed only if an error handler needs them."""

    def __init__(self, selected: SelectedRows, rows: ProjectedRows, current: CurrentRecord) -> None:
        self._selected = selected
        self._view = rows
        self._keys = rows.keys(selected)
        self._timestamps = selected.times().tolist()
        self._offsets = selected.offsets()
        self._stream_times = selected.stream_times(current.stream_time)
        self._reached = selected.reached(current.reached).tolist()
        self._ranks = selected.ranks()
        self._headers = selected.header_rows()

    def at(self, row: int, value: object) -> DelayedRecord:
        """Return the record of a row, for which the function returned `value`."""
        old_value = self._values[row] if isinstance(value, Failed) else None
        headers = () if self._headers is None else self._headers[row]
        cursor = RecordCursor(self._selected.batch, self._offsets[row : row + 1], self._stream_times[row : row + 1], [])
        rank = 0 if self._ranks is None else int(self._ranks[row])
        timestamp = self._timestamps[row]
        return DelayedRecord(self._keys[row], old_value, timestamp, headers, cursor, self._reached[row], rank)

    @cached_property
    def _values(self) -> list[object]:
        return self._view.values(self._selected)


@dataclass(frozen=True, slots=True)
class MapBatchOperator(ClosureOperator):
    """Holds back up to `max_rows` records, while input is available, and calls the function once for all of them.

    Parameters
    ----------
    function : callable
        Takes a table or frame of the records, and returns as many values.
    frames : Frames
        Makes the argument of the function.
    result : type or None
        The type of the values.
    max_rows : int
        Greatest number of records in a call.
    """

    function: Callable[[Any], Any]
    frames: Frames
    result: object
    max_rows: int

    @property
    def keeps_order(self) -> bool:
        return True

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        buffer = BatchBuffer(context, self, forward)
        pending = buffer.waiting
        hold = buffer.hold
        max_rows = self.max_rows

        def hold_back(key: object, value: object, timestamp: int) -> None:
            pending.append(hold(key, value, timestamp))
            if len(pending) >= max_rows:
                buffer.release_all()

        context.share_with_columns(buffer)
        return hold_back

    def values_of(self, table: pa.Table) -> Iterable[object]:
        """Return the function's values for the records of a table, or `Failed` in place of a value.

        If the function raises an error, it is called again for each record, so that only the records fail that cause
        errors.
        """
        try:
            return self._call(table)
        except Exception as error:
            if len(table) == 1:
                return [Failed(error)]
            return chain.from_iterable(self.values_of(table.slice(row, 1)) for row in range(len(table)))

    def _call(self, table: pa.Table) -> list[object]:
        return rows_of(self.function(self.frames.frame(table)), len(table), self.result)


@dataclass(frozen=True, slots=True)
class Failed:
    """The error of a function, in place of the value of a record."""

    error: Exception


class BatchBuffer(DelayedResults[DelayedRecord], ColumnHandle):
    """The records that one operator of one task holds back for the next call of its function.

    Parameters
    ----------
    context : OperatorContext
    operator : MapBatchOperator
    forward : callable
        Takes the records with their new values.
    """

    def __init__(self, context: OperatorContext, operator: MapBatchOperator, forward: Forward) -> None:
        super().__init__(context.current)
        context.hold_back(self)
        self.operator = operator
        self._forward = bind_operator(MapValuesOperator(self.value), context, forward)
        self._result: object = None

    def release_next(self) -> None:
        """Call the function for the oldest held records, and forward the results."""
        records = [self.waiting.popleft() for _ in range(min(len(self.waiting), self.operator.max_rows))]
        self.forward_all(zip(records, self._values_of(records), strict=True))

    def _values_of(self, records: Sequence[DelayedRecord]) -> Iterable[object]:
        """Return the function's values for records. If the records cannot be one table, try each half of them.

        So a value that fits no column fails alone, and a value of another type than the others is in another table.
        """
        try:
            table = self._table_of(records)
        except Exception as error:
            if len(records) == 1:
                return [Failed(error)]
            middle = len(records) // 2
            return chain.from_iterable(map(self._values_of, (records[:middle], records[middle:])))
        return self.operator.values_of(table)

    def _table_of(self, records: Sequence[DelayedRecord]) -> pa.Table:
        keys = [record.key for record in records]
        values = [record.value for record in records]
        return self.operator.frames.table(keys, values, [record.timestamp for record in records])

    def forward_all(self, results: Iterable[tuple[DelayedRecord, object]]) -> None:
        """Forward records with the function's results, which are values or `Failed`."""
        for record, self._result in results:
            self.forward_held(self._forward, record, record.value)

    def value(self, _: object) -> object:
        """Return the new value of the record that is forwarded, or raise the function's error for it."""
        if isinstance(self._result, Failed):
            raise self._result.error
        return self._result

"""A function over batches of records: one value is returned for each, and forwarded in the place of its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from kstreams.processor.columns.projected_rows import ProjectedRows
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.columns.target import Target
from kstreams.processor.context.current_record import CurrentRecord, DelayedRecord, RecordCursor
from kstreams.processor.context.delayed_results import DelayedResults
from kstreams.processor.context.operator_context import ClosureOperator, ColumnHandle, OperatorContext, bind_operator
from kstreams.processor.operators.map_batch.frames import Frames
from kstreams.processor.operators.map_batch.results import rows_of
from kstreams.processor.operators.stateless import MapValuesOperator
from kstreams.processor.topology.nodes import SourceNode
from kstreams.processor.topology.operator import Forward


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

    def at(self, row: int, value: Any) -> DelayedRecord:
        """One of them, for which the function gave a value."""
        old = self._values[row] if isinstance(value, Failed) else None
        headers = () if self._headers is None else self._headers[row]
        cursor = RecordCursor(self._selected.batch, self._offsets[row : row + 1], self._stream_times[row : row + 1], [])
        return DelayedRecord(self._keys[row], old, self._timestamps[row], headers, cursor, self._reached[row])

    @cached_property
    def _values(self) -> list[object]:
        return self._view.values(self._selected)


@dataclass(frozen=True, slots=True)
class MapBatchOperator(ClosureOperator):
    """Gathers records up to `max_rows`, or until nothing more comes for now, and calls the function once for all.

    Parameters
    ----------
    function : callable
        Takes a table or frame of the records, gives as many values.
    frames : Frames
        Makes what it takes.
    result : type or None
        Of the values.
    max_rows : int
    """

    function: Callable[[Any], Any]
    frames: Frames
    result: object
    max_rows: int

    @property
    def keeps_order(self) -> bool:
        return True

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        gathered = BatchedRecords(context, self, forward)
        pending = gathered.waiting
        hold = gathered.hold
        max_rows = self.max_rows

        def gather(key: object, value: object, timestamp: int) -> None:
            pending.append(hold(key, value, timestamp))
            if len(pending) >= max_rows:
                gathered.release_all()

        context.share_with_columns(gathered)
        return gather

    def values_of(self, table: pa.Table) -> Iterable[object]:
        """What the function gives for these records: values, or what it raised.

        When it fails, it is called for each record alone, in turn, so that only those fail that are to blame.
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
    """Stands for the value of a record for which the function raised."""

    error: Exception


class BatchedRecords(DelayedResults[DelayedRecord], ColumnHandle):
    """The records that wait for their batch, in one task.

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
        self._current: Any = None

    def release_next(self) -> None:
        """Call the function for the oldest records, and forward the results."""
        some = [self.waiting.popleft() for _ in range(min(len(self.waiting), self.operator.max_rows))]
        self.forward_all(zip(some, self._values_of(some), strict=True))

    def _values_of(self, some: Sequence[DelayedRecord]) -> Iterable[object]:
        """What the function gives for records. Of those that make no table together, halves are tried, in turn.

        So a value that no column takes fails alone, and one of another type than the others has a table of its own.
        """
        try:
            table = self._table_of(some)
        except Exception as error:
            if len(some) == 1:
                return [Failed(error)]
            middle = len(some) // 2
            return chain.from_iterable(map(self._values_of, (some[:middle], some[middle:])))
        return self.operator.values_of(table)

    def _table_of(self, some: Sequence[DelayedRecord]) -> pa.Table:
        keys, values, timestamps = zip(*((record.key, record.value, record.timestamp) for record in some), strict=True)
        return self.operator.frames.table(keys, values, timestamps)

    def forward_all(self, some: Iterable[tuple[DelayedRecord, object]]) -> None:
        """Forward records, each with what the function gave for it."""
        for record, self._current in some:
            self.forward_held(self._forward, record, record.value)

    def value(self, _: Any) -> Any:
        """The new value of the record that is forwarded; raises what the function raised for it."""
        if isinstance(self._current, Failed):
            raise self._current.error
        return self._current

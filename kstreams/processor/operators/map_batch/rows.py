"""A function over batches of records: one value is returned for each, and forwarded in the place of its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from kstreams.processor.context.column_handle import ColumnHandle
from kstreams.processor.context.held_back import HeldBack
from kstreams.processor.context.operator_binding import ClosureOperator, bind_operator
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.context.record_cursor import HeldRecord
from kstreams.processor.operators.map_batch.frames import Frames
from kstreams.processor.operators.map_batch.results import rows_of
from kstreams.processor.operators.stateless import MapValuesOperator
from kstreams.processor.topology.operator import Forward


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
    result: Any
    max_rows: int

    @property
    def keeps_order(self) -> bool:
        return True

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        gathered = BatchedRecords(context, self, forward)
        pending = gathered.waiting
        hold = gathered.hold
        max_rows = self.max_rows

        def gather(key: Any, value: Any, timestamp: int) -> None:
            pending.append(hold(key, value, timestamp))
            if len(pending) >= max_rows:
                gathered.release_all()

        context.share_with_columns(gathered)
        return gather

    def values_of(self, table: pa.Table) -> Iterable[Any]:
        """What the function gives for these records: values, or what it raised.

        When it fails, it is called for each record alone, in turn, so that only those fail that are to blame.
        """
        try:
            return self._call(table)
        except Exception as error:
            if len(table) == 1:
                return [Failed(error)]
            return chain.from_iterable(self.values_of(table.slice(row, 1)) for row in range(len(table)))

    def _call(self, table: pa.Table) -> list[Any]:
        return rows_of(self.function(self.frames.frame(table)), len(table), self.result)


@dataclass(frozen=True, slots=True)
class Failed:
    """Stands for the value of a record for which the function raised."""

    error: Exception


class BatchedRecords(HeldBack[HeldRecord], ColumnHandle):
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

    def _values_of(self, some: Sequence[HeldRecord]) -> Iterable[Any]:
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

    def _table_of(self, some: Sequence[HeldRecord]) -> pa.Table:
        keys, values, timestamps = zip(*((record.key, record.value, record.timestamp) for record in some), strict=True)
        return self.operator.frames.table(keys, values, timestamps)

    def forward_all(self, some: Iterable[tuple[HeldRecord, Any]]) -> None:
        """Forward records, each with what the function gave for it."""
        for record, self._current in some:
            self.forward_held(self._forward, record, record.value)

    def value(self, _: Any) -> Any:
        """The new value of the record that is forwarded; raises what the function raised for it."""
        if isinstance(self._current, Failed):
            raise self._current.error
        return self._current

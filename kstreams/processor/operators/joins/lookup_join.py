"""Join of a stream with a table or global table: each record looks up a row, at once or after a grace period."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.expressions import Expr, Operation, as_function
from kstreams.processor.columns.projection import Lookup, OfRow, arrow_type
from kstreams.processor.columns.source_columns import Columns, Evaluation
from kstreams.processor.context.operator_context import ClosureOperator, ColumnHandle, OperatorContext
from kstreams.processor.context.table_view import TableView, ValuesGetter
from kstreams.processor.topology.operator import Forward
from kstreams.state.api import RecordBuffer
from kstreams.windows import END_OF_TIME_MS


class LiveLookup:
    """Adds the columns of looked-up rows to the columns of a batch.

    Parameters
    ----------
    lookup : Lookup
    leaves : iterable of Expr
        All columns that the region reads.
    get_values : ValuesGetter
        Reads rows of the table by key.

    Raises
    ------
    SerdeError
        If a column of the rows has no columnar form.
    """

    def __init__(self, lookup: Lookup, leaves: Iterable[Expr], get_values: ValuesGetter) -> None:
        self._lookup = lookup
        self._get_values = get_values
        self._evaluation = Evaluation(lookup.expressions)
        self._readers = [(repr(leaf), *_reader(leaf.detail)) for leaf in leaves if _reads_rows_of(leaf, lookup.step)]

    def add(self, columns: Columns) -> Columns:
        """Return the columns with those of the rows. Raise an ArrowException if a value does not fit its column."""
        columns = self._evaluation.compute(columns)
        keys = columns[repr(self._lookup.place)]
        if self._lookup.where is not None:
            keys = pc.if_else(pc.fill_null(columns[repr(self._lookup.where)], False), keys, None)
        encoded = keys.dictionary_encode()
        rows = self._get_values(encoded.dictionary.to_pylist())
        for name, read, column_type in self._readers:
            columns[name] = pa.array(list(map(read, rows)), column_type).take(encoded.indices)
        return columns


def _reads_rows_of(leaf: Expr, step: str) -> bool:
    return leaf.operation is Operation.COLUMN and leaf.detail.step == step


def _reader(column: OfRow) -> tuple[Callable[[Any], Any], pa.DataType]:
    """Return the function that reads a column from a row, and the type of the column."""
    return as_function(column.read, ("value",), value=column.row), arrow_type(column)


NULL_KEY_OR_VALUE = "null key or value"


class LookupHandle(ColumnHandle):
    """The read access of a join to its table, for the columnar path."""

    __slots__ = ("get_values",)

    def __init__(self, get_values: ValuesGetter) -> None:
        self.get_values = get_values


@dataclass(frozen=True, slots=True)
class LookupJoinOperator(ClosureOperator):
    """Joins each record with a row of a table. Updates of the table emit nothing.

    Parameters
    ----------
    table : TableView
    joiner : callable
        `joiner(key, table_key, value, table_value)`.
    left : bool
        True if records without a row in the table are joined with None; False if they are dropped.
    select_key : callable, optional
        `select_key(key, value)` returns the table's key (global tables); the default is the record's key.
    as_of : bool
        True if the row that was valid at the record's time is looked up (versioned tables); False for the current row.
    """

    table: TableView
    joiner: Callable[[Any, Any, Any, Any], Any]
    left: bool = False
    select_key: Callable[[Any, Any], Any] | None = None
    as_of: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        look_up = self.table.bind(context)
        joiner = self.joiner
        is_left = self.left
        as_of = self.as_of
        context.share_with_columns(LookupHandle(self.table.bind_many(context, look_up)))
        select_key = self.select_key or _own_key

        def lookup_join(key: object, value: object, timestamp: int) -> None:
            table_key = select_key(key, value)
            if value is None or (table_key is None and not is_left):
                context.dropped(NULL_KEY_OR_VALUE)
                return
            table_value = None if table_key is None else look_up(table_key, timestamp) if as_of else look_up(table_key)
            if table_value is not None:
                forward(key, joiner(key, table_key, value, table_value.value), timestamp)
            elif is_left:
                forward(key, joiner(key, table_key, value, None), timestamp)

        return lookup_join


@dataclass(frozen=True, slots=True)
class GraceLookupJoinOperator(ClosureOperator):
    """Holds records back before their lookup, so that they are joined with late versions of the table too (KIP-923).

    Held records are joined in order of time. A record that is later than the grace period is joined at once.

    Parameters
    ----------
    join : LookupJoinOperator
        The join with a versioned table.
    buffer : str
        The store of held records.
    grace_ms : int
        How long a record is held back, in stream time.
    """

    join: LookupJoinOperator
    buffer: str
    grace_ms: int

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        join = self.join.bind(context, forward)
        grace_ms = self.grace_ms
        is_left = self.join.left
        buffer: RecordBuffer = context.state_store(self.buffer)
        current = context.current
        stream_time = -1

        def hold_back(key: object, value: object, timestamp: int) -> None:
            nonlocal stream_time
            if value is None or (key is None and not is_left):
                context.dropped(NULL_KEY_OR_VALUE)
                return
            if key is None or timestamp < stream_time - grace_ms:
                join(key, value, timestamp)
            else:
                stream_time = max(stream_time, timestamp)
                buffer.put(key, value, timestamp, current.headers)
            release(stream_time - grace_ms)

        def release(until_ms: int) -> bool:
            records = list(buffer.pop_until(until_ms))
            for record in records:
                current.forward_with(record.headers, join, record.key, record.value, record.timestamp)
            return bool(records)

        def pass_time(elapsed_ms: int) -> bool:
            nonlocal stream_time
            stream_time += elapsed_ms if stream_time >= 0 else 0
            return release(stream_time - grace_ms)

        def release_all() -> None:
            release(END_OF_TIME_MS)

        stream_time = context.keep_in_metadata("stream_time", lambda: stream_time)
        context.at_end_of_input(release_all)
        context.at_idle(pass_time)
        return hold_back


def _own_key(key: object, value: object) -> Any:
    return key

"""Join of a stream with a table or global table: each record looks up the table, at once or after a time of grace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.expressions import Expr, Operation, as_function
from kstreams.processor.columns.evaluation import Evaluation
from kstreams.processor.columns.lookups import Lookup, OfRow, arrow_type
from kstreams.processor.columns.source_columns import Columns
from kstreams.processor.context.operator_context import ClosureOperator, ColumnHandle, OperatorContext
from kstreams.processor.context.table_view import TableView, ValuesGetter
from kstreams.processor.topology.operator import Forward
from kstreams.state.api import RecordBuffer


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


NULL_KEY_OR_VALUE = "null key or value"
ALL_TIME = 2**63 - 1


class LookupHandle(ColumnHandle):
    """The live lookup of a join."""

    __slots__ = ("get_values",)

    def __init__(self, get_values: ValuesGetter) -> None:
        self.get_values = get_values


@dataclass(frozen=True, slots=True)
class LookupJoinOperator(ClosureOperator):
    """Looks each record up in a table; updates of the table emit nothing.

    Parameters
    ----------
    table : TableView
        What is looked up.
    joiner : callable
        `joiner(key, table_key, value, looked_up)`.
    left : bool
        Whether records without a row in the table are joined with None, or left out.
    select_key : callable, optional
        `select_key(key, value)` gives the table's key (global tables); by default it is the record's.
    as_of : bool
        Whether rows are looked up as they were at the time of the record (versioned tables), or as they are now.
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
    """Lets records wait before they are looked up, so that versions of the table that come late are found (KIP-923).

    They are joined in order of time. A record that comes later than the grace allows is joined at once.

    Parameters
    ----------
    join : LookupJoinOperator
        Of a versioned table.
    buffer : str
        The store in which records wait.
    grace_ms : int
        How long each waits, in stream time.
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

        def wait(key: object, value: object, timestamp: int) -> None:
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
            due = list(buffer.pop_until(until_ms))
            for record in due:
                current.forward_with(record.headers, join, record.key, record.value, record.timestamp)
            return bool(due)

        def pass_time(elapsed_ms: int) -> bool:
            nonlocal stream_time
            stream_time += elapsed_ms if stream_time >= 0 else 0
            return release(stream_time - grace_ms)

        def release_all() -> None:
            release(ALL_TIME)

        stream_time = context.keep_in_metadata("stream_time", lambda: stream_time)
        context.at_end_of_input(release_all)
        context.at_idle(pass_time)
        return wait


def _own_key(key: object, value: object) -> Any:
    return key

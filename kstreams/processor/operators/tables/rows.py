"""Tables made of records, views of tables, and how others look rows up in them.

Between tables the value that flows is a `Change`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.chain import Statement, StatementOperator
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter, ValuesGetter
from kstreams.processor.operators.aggregation.emission import MaterializedRows, emitter, make_tuple
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, ValueAndTimestamp

LATEST = -1
"""What a versioned store answers to the put of a version that no later one follows."""

OUT_OF_ORDER = "out-of-order update of a versioned table"
TOO_OLD = "older than the history of the store"


def row_writer(
    context: OperatorContext, forward: Forward, table_rows: MaterializedRows, *, skips_empty: bool = False
) -> Forward:
    """Return `write(key, value or None, timestamp)`, which writes a row of a table and passes the update on.

    Parameters
    ----------
    context : OperatorContext
    forward : callable
    table_rows : MaterializedRows
    skips_empty : bool
        Whether to skip an update of a key that neither had nor gets a row.
    """
    writer = _version_writer if table_rows.versioned else _latest_writer
    return writer(context, forward, table_rows, skips_empty)


def _latest_writer(
    context: OperatorContext, forward: Forward, table_rows: MaterializedRows, skips_empty: bool
) -> Forward:
    current = context.current
    dropped = context.dropped
    store = context.state_store(table_rows.store)
    get = store.get
    put_row = store.put
    emit = emitter(context, forward, table_rows)

    def write(key: object, value: object, timestamp: int) -> None:
        if key is None:
            dropped("null key")
            return
        row = get(key)
        if skips_empty and value is None and row is None:
            return
        put_row(key, None if value is None else make_tuple(ValueAndTimestamp, (value, timestamp)))
        emit(key, value, None if row is None else row[0], timestamp, current.headers)

    return write


def _version_writer(
    context: OperatorContext, forward: Forward, table_rows: MaterializedRows, skips_empty: bool
) -> Forward:
    """Write a late version at its place in the history, and mark its update as not the latest."""
    store = context.state_store(table_rows.store)
    dropped = context.dropped
    sends_old = table_rows.sends_old

    def write(key: object, value: object, timestamp: int) -> None:
        if key is None:
            dropped("null key")
            return
        row = store.get(key)
        valid_to = store.put(key, value, timestamp)
        if valid_to < LATEST:
            dropped(TOO_OLD)
        elif not (skips_empty and value is None and row is None):
            old = row.value if sends_old and row is not None else None
            forward(key, Change(value, old, valid_to == LATEST), timestamp)

    return write


@dataclass(frozen=True, slots=True)
class TableSourceOperator(ClosureOperator):
    """Records become updates of a table: a null value deletes, a null key has no place."""

    table_rows: MaterializedRows

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        return row_writer(context, forward, self.table_rows)


@dataclass(frozen=True, slots=True)
class UnmaterializedTableSourceOperator(ClosureOperator):
    """Records become updates of a table without lookups: nothing is stored."""

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        dropped = context.dropped

        def process(key: object, value: object, timestamp: int) -> None:
            if key is None:
                dropped("null key")
                return
            forward(key, Change(value), timestamp)

        return process


@dataclass(frozen=True, slots=True)
class ToStreamOperator(StatementOperator):
    """The new values of a table as records."""

    def statement(self) -> Statement:
        return Statement("value = value[0]", {})  # of the Change


Mapper = Callable[[Any, Any, int], Any]
"""Of a key, a value and a timestamp, the value of the view; None where the view has no row."""


@dataclass(frozen=True, slots=True)
class ViewOperator(ClosureOperator):
    """A view of a table that keeps nothing: maps new values, and old ones if they are wanted.

    Parameters
    ----------
    mapper : callable
        Never called with None.
    sends_old : bool
        Whether old values go along.
    skips_empty : bool
        Whether an update is left out that neither had nor has a row here (filters).
    """

    mapper: Mapper
    sends_old: bool = False
    skips_empty: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        mapper = self.mapper
        skips_empty = self.skips_empty

        def process(key: Any, change: Any, timestamp: int) -> None:
            new, _, is_latest = change
            new = None if new is None else mapper(key, new, timestamp)
            forward(key, Change(new, None, is_latest), timestamp)

        def process_both(key: Any, change: Any, timestamp: int) -> None:
            new, old, is_latest = change
            new = None if new is None else mapper(key, new, timestamp)
            old = None if old is None else mapper(key, old, timestamp)
            if skips_empty and new is None and old is None:
                return
            forward(key, Change(new, old, is_latest), timestamp)

        return process_both if self.sends_old else process


@dataclass(frozen=True, slots=True)
class MaterializedViewOperator(ClosureOperator):
    """A view of a table with a store of its own, from which old values are taken."""

    mapper: Mapper
    table_rows: MaterializedRows
    skips_empty: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        mapper = self.mapper
        skips_empty = self.skips_empty and self.table_rows.sends_old
        write = row_writer(context, forward, self.table_rows, skips_empty=skips_empty)

        def process(key: Any, change: Any, timestamp: int) -> None:
            new = change[0]
            write(key, None if new is None else mapper(key, new, timestamp), timestamp)

        return process


@dataclass(frozen=True, slots=True)
class StoreView(TableView):
    """Looks rows up in the table's own store."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, context: OperatorContext) -> ValueGetter:
        getter: ValueGetter = context.state_store(self.store).get
        return getter

    def bind_many(self, context: OperatorContext, get: ValueGetter) -> ValuesGetter:
        getter: ValuesGetter | None = getattr(context.state_store(self.store), "get_values", None)
        return getter or super(StoreView, self).bind_many(context, get)  # versions are looked up one by one


@dataclass(frozen=True, slots=True)
class MappedView(TableView):
    """Looks rows up in the parent of a view that keeps nothing, and maps what it finds."""

    parent: TableView
    mapper: Mapper

    @property
    def stores(self) -> tuple[str, ...]:
        return self.parent.stores

    def bind(self, context: OperatorContext) -> ValueGetter:
        get = self.parent.bind(context)
        mapper = self.mapper

        def look_up(key: object, *as_of_ms: int) -> ValueAndTimestamp[object] | None:
            row = get(key, *as_of_ms)
            value = None if row is None else mapper(key, row[0], row[1])
            return None if value is None else ValueAndTimestamp(value, row[1])

        return look_up

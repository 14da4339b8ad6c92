"""Tables of records, and views of tables: their updates, and lookups of their rows.

An update of a table is forwarded as a `Change`.
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
"""What a versioned store returns from `put` if the version is the latest."""

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
        True if an update is dropped when there is neither an old nor a new row.
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
    """Return the writer of a versioned table. It marks the update of an out-of-order version as not the latest."""
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
    """Turns records into updates of a table. A null value deletes a row; records without a key are dropped."""

    table_rows: MaterializedRows

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        return row_writer(context, forward, self.table_rows)


@dataclass(frozen=True, slots=True)
class UnmaterializedTableSourceOperator(ClosureOperator):
    """Turns records into updates of a table without a store: nobody looks its rows up."""

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
    """Turns updates of a table into records of the new values."""

    def statement(self) -> Statement:
        return Statement("value = value[0]", {})  # the value is a Change


Mapper = Callable[[Any, Any, int], Any]
"""Returns the value of a view for a key, a value and a timestamp; None if the view has no row."""


@dataclass(frozen=True, slots=True)
class ViewOperator(ClosureOperator):
    """Maps the new value of an update, and the old value if needed: a view of a table without a store.

    Parameters
    ----------
    mapper : callable
        Never called with None.
    sends_old : bool
        True if updates carry the old value too.
    skips_empty : bool
        True if an update is dropped when the view has neither an old nor a new row (filters).
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
    """Maps the new value of an update, and takes the old value from its store: a view of a table with a store."""

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
    """Looks rows up in the store of the table."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, context: OperatorContext) -> ValueGetter:
        getter: ValueGetter = context.state_store(self.store).get
        return getter

    def bind_many(self, context: OperatorContext, get: ValueGetter) -> ValuesGetter:
        getter: ValuesGetter | None = getattr(context.state_store(self.store), "get_values", None)
        return getter or super(StoreView, self).bind_many(context, get)  # a versioned store has no `get_values`


@dataclass(frozen=True, slots=True)
class MappedView(TableView):
    """Looks rows up in the parent of a view without a store, and maps them."""

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

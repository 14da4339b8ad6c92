"""Join of two tables by their keys: an update of either table updates the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.aggregation.emission import MaterializedRows, emitter
from kstreams.processor.operators.tables.rows import LATEST, OUT_OF_ORDER, TOO_OLD
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, ValueAndTimestamp

Joiner: TypeAlias = Callable[[Any, Any, Any], Any]
"""Returns the result for a key and the rows of two tables."""


@dataclass(frozen=True, slots=True)
class TableJoinOperator(ClosureOperator):
    """Turns an update of one table into an update of the join, with the current row of the other table.

    Parameters
    ----------
    other : TableView
        The other table.
    joiner : callable
        `joiner(key, row of this table, row of the other table)`.
    outer, other_outer : bool
        True if rows of this table, and of the other table, are joined with None if they have no partner.
    sends_old : bool
        True if updates carry the old result too.
    versioned : bool
        True if this table is versioned: an out-of-order update is then ignored.
    """

    other: TableView
    joiner: Joiner
    outer: bool
    other_outer: bool
    sends_old: bool = False
    versioned: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        look_up = self.other.bind(context)
        outer = self.outer
        sends_old = self.sends_old
        versioned = self.versioned
        result = self._result()

        def join(key: Any, change: Any, timestamp: int) -> None:
            new, old, is_latest = change
            if versioned and not is_latest:
                context.dropped(OUT_OF_ORDER)
                return
            row = look_up(key)
            if row is None and (not outer or (new is None and old is None)):
                return
            other = None
            if row is not None:
                other = row[0]
                timestamp = max(timestamp, row[1])
            old = result(key, old, other) if sends_old else None
            forward(key, Change(result(key, new, other), old, is_latest), timestamp)

        return join

    def _result(self) -> Joiner:
        """Return the joiner, which returns None if the join has no row."""
        joiner = self.joiner
        other_outer = self.other_outer

        def result(key: Any, this: Any, other: Any) -> Any:
            if this is None and (other is None or not other_outer):
                return None
            return joiner(key, this, other)

        return result


@dataclass(frozen=True, slots=True)
class TableJoinMergeOperator(ClosureOperator):
    """Writes the rows of a join to their store, and passes updates on."""

    table_rows: MaterializedRows

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        return self._versioned(context, forward) if self.table_rows.versioned else self._latest(context, forward)

    def _latest(self, context: OperatorContext, forward: Forward) -> Forward:
        current = context.current
        store = context.state_store(self.table_rows.store)
        get = store.get
        put_row = store.put
        cached = self.table_rows.uses_cache(context)
        emit = emitter(context, forward, self.table_rows)

        def write(key: Any, change: Any, timestamp: int) -> None:
            new, old, _ = change
            if cached:  # the old value is the one that was forwarded last, not the old value of the join
                row = get(key)
                old = None if row is None else row[0]
            put_row(key, None if new is None else ValueAndTimestamp(new, timestamp))
            emit(key, new, old, timestamp, current.headers)

        return write

    def _versioned(self, context: OperatorContext, forward: Forward) -> Forward:
        store = context.state_store(self.table_rows.store)

        def write(key: Any, change: Any, timestamp: int) -> None:
            valid_to = store.put(key, change.new, timestamp)
            if valid_to < LATEST:
                context.dropped(TOO_OLD)
                return
            forward(key, Change(change.new, change.old, valid_to == LATEST), timestamp)

        return write


@dataclass(frozen=True, slots=True)
class JoinedView(TableView):
    """Looks rows up in both tables of a join without a store of its own."""

    left: TableView
    right: TableView
    joiner: Joiner
    left_outer: bool
    right_outer: bool

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.left.stores, *self.right.stores)))

    def bind(self, context: OperatorContext) -> ValueGetter:
        get_left = self.left.bind(context)
        get_right = self.right.bind(context)
        joiner = self.joiner
        left_outer = self.left_outer
        right_outer = self.right_outer

        def look_up(key: object) -> ValueAndTimestamp[object] | None:
            left = get_left(key)
            right = get_right(key)
            if left is None and (right is None or not right_outer):
                return None
            if left is not None and right is None and not left_outer:
                return None
            value = joiner(key, left and left[0], right and right[0])
            return None if value is None else ValueAndTimestamp(value, max(row[1] for row in (left, right) if row))

        return look_up

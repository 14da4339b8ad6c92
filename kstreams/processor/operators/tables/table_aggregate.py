"""Rows of a table by another key, and one aggregate per group: the old row is subtracted, the new one added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import eq
from typing import Any

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.aggregation.emission import MaterializedRows, emitter
from kstreams.processor.operators.first_warning import no_warning
from kstreams.processor.operators.tables.rows import OUT_OF_ORDER
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, ValueAndTimestamp
from kstreams.serdes import Serde
from kstreams.serdes.registry import same_bytes_when_equal

Pair = tuple[Any, Any] | None


@dataclass(frozen=True, slots=True)
class GroupRowsOperator(ClosureOperator):
    """Forwards each change by the new keys: as one if old and new row are of the same group, else the old one first.

    Parameters
    ----------
    function : callable
        `(key, value) -> (key, value)`; a row whose new key or value is None belongs to no group.
    versioned : bool
        Whether the table has a history: an update that comes after a later one of its key moves no row.
    key : Serde, optional
        Of the groups' keys, where it is known: groups are the same if their keys have the same bytes.
    """

    function: Callable[[Any, Any], tuple[Any, Any]]
    versioned: bool = False
    key: Serde | None = None

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        function = self.function
        versioned = self.versioned
        is_same = self._is_same()

        def group_of(key: object, value: object) -> Pair:
            if value is None:
                return None
            group, row = function(key, value)
            return None if group is None or row is None else (group, row)

        def process(key: Any, change: Any, timestamp: int) -> None:
            new, old, is_latest = change
            if versioned and not is_latest:
                context.dropped(OUT_OF_ORDER)
                return
            joining = group_of(key, new)
            leaving = group_of(key, old)
            if joining is not None and leaving is not None and is_same(joining[0], leaving[0]):
                forward(joining[0], Change(joining[1], leaving[1], is_latest), timestamp)
                return
            if leaving is not None:
                forward(leaving[0], Change(None, leaving[1], is_latest), timestamp)
            if joining is not None:
                forward(joining[0], Change(joining[1], None, is_latest), timestamp)

        return process

    def _is_same(self) -> Callable[[Any, Any], bool]:
        if self.key is None or same_bytes_when_equal(self.key):
            return eq
        write = self.key.serialize
        return lambda first, other: write(first) == write(other)


@dataclass(frozen=True, slots=True)
class TableAggregateOperator(ClosureOperator):
    """Keeps one aggregate per group.

    Parameters
    ----------
    initial : callable
        The aggregate before the first row.
    add, subtract : callable
        `(key, row, aggregate) -> aggregate`; None deletes.
    gave_nothing : callable
        Called when `add` gives None where there was no aggregate.
    """

    initial: Callable[[], Any]
    add: Callable[[Any, Any, Any], Any]
    subtract: Callable[[Any, Any, Any], Any]
    table_rows: MaterializedRows
    gave_nothing: Callable[[], None] = no_warning

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        initial = self.initial
        add = self.add
        subtract = self.subtract
        current = context.current
        store = context.state_store(self.table_rows.store)
        get = store.get
        put_row = store.put
        emit = emitter(context, forward, self.table_rows)
        cached = self.table_rows.uses_cache(context)
        gave_nothing = self.gave_nothing

        def process(key: Any, change: Any, timestamp: int) -> None:
            new, old, _ = change
            before, latest = get(key) or (None, timestamp)
            after = before
            if old is not None and before is not None:
                after = subtract(key, old, after)
            if new is not None:
                after = add(key, new, initial() if after is None else after)
                if after is None and before is None:
                    gave_nothing()
            elif old is None or before is None:
                latest = timestamp  # no stored value took part
            at = max(timestamp, latest)
            if after is None:
                put_row(key, None)
                # A tombstone from the cache has the time of its record.
                emit(key, None, before, timestamp if cached else at, current.headers)
            else:
                put_row(key, ValueAndTimestamp(after, at))
                emit(key, after, before, at, current.headers)

        return process

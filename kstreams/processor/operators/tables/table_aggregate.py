"""Rows of a table grouped by another key, and one aggregate per group: old rows are subtracted, new rows added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from operator import eq
from typing import Any, TypeAlias

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.aggregation.emission import MaterializedRows, Results, emitter
from kstreams.processor.operators.first_warning import no_warning
from kstreams.processor.operators.tables.rows import OUT_OF_ORDER
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, ValueAndTimestamp
from kstreams.serdes import Serde
from kstreams.serdes.registry import same_bytes_when_equal

Pair = tuple[Any, Any] | None


@dataclass(frozen=True, slots=True)
class GroupRowsOperator(ClosureOperator):
    """Forwards each change of a row with the keys of its groups.

    If old and new row are in the same group, there is one change of both; else the change of the old row comes first.

    Parameters
    ----------
    function : callable
        `(key, value) -> (key, value)`; a row whose new key or value is None is in no group.
    versioned : bool
        True if the table is versioned: an out-of-order update is then ignored.
    key : Serde, optional
        The serde of group keys if it is known: groups are the same if their keys have the same bytes.
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
            new_pair = group_of(key, new)
            old_pair = group_of(key, old)
            if new_pair is not None and old_pair is not None and is_same(new_pair[0], old_pair[0]):
                forward(new_pair[0], Change(new_pair[1], old_pair[1], is_latest), timestamp)
                return
            if old_pair is not None:
                forward(old_pair[0], Change(None, old_pair[1], is_latest), timestamp)
            if new_pair is not None:
                forward(new_pair[0], Change(new_pair[1], None, is_latest), timestamp)

        return process

    def _is_same(self) -> Callable[[Any, Any], bool]:
        if self.key is None or same_bytes_when_equal(self.key):
            return eq
        write = self.key.serialize
        return lambda first, other: write(first) == write(other)


RowStep: TypeAlias = Callable[[Any, Any, Any], Any]
"""`step(key, row, aggregate)`: the aggregate after a row came or left; None deletes it."""


class TableAggregator(ABC):
    """The aggregation of the rows of a group."""

    __slots__ = ()

    @abstractmethod
    def initial(self) -> Any:
        """Return the aggregate before the first row."""

    @property
    def result(self) -> Results | None:
        """What others see of the aggregate that is stored; None if it is the aggregate itself."""
        return None

    @abstractmethod
    def bind(self, context: OperatorContext) -> tuple[RowStep, RowStep]:
        """Return the functions that add and subtract a row in one task."""


@dataclass(frozen=True, slots=True)
class FunctionsOfRows(TableAggregator):
    """An aggregation by functions.

    Parameters
    ----------
    start : callable
        The aggregate before the first row.
    add, subtract : callable
        `(key, row, aggregate) -> aggregate`; None deletes.
    """

    start: Callable[[], Any]
    add: RowStep
    subtract: RowStep

    def initial(self) -> Any:
        return self.start()

    def bind(self, context: OperatorContext) -> tuple[RowStep, RowStep]:
        return self.add, self.subtract


@dataclass(frozen=True, slots=True)
class TableAggregateOperator(ClosureOperator):
    """Stores one aggregate per group.

    Parameters
    ----------
    aggregator : TableAggregator
    table_rows : MaterializedRows
    warn_of_none : callable
        Called if a row is added, there was no aggregate before, and there is none after.
    """

    aggregator: TableAggregator
    table_rows: MaterializedRows
    warn_of_none: Callable[[], None] = no_warning

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        initial = self.aggregator.initial
        current = context.current
        store = context.state_store(self.table_rows.store)
        get = store.get
        put_row = store.put
        # At a flush, the updates in the record cache are emitted before the aggregator removes what they list.
        emit = emitter(context, forward, self.table_rows, result=self.aggregator.result)
        add, subtract = self.aggregator.bind(context)
        cached = self.table_rows.uses_cache(context)
        warn_of_none = self.warn_of_none

        def process(key: Any, change: Any, timestamp: int) -> None:
            new, old, _ = change
            before, stored_ms = get(key) or (None, timestamp)
            after = before
            if old is not None and before is not None:
                after = subtract(key, old, after)
            if new is not None:
                after = add(key, new, initial() if after is None else after)
                if after is None and before is None:
                    warn_of_none()
            elif old is None or before is None:
                stored_ms = timestamp  # the stored aggregate was not used
            time_ms = max(timestamp, stored_ms)
            if after is None:
                put_row(key, None)
                # A tombstone that the cache emits has the timestamp of its record.
                emit(key, None, before, timestamp if cached else time_ms, current.headers)
            else:
                put_row(key, ValueAndTimestamp(after, time_ms))
                emit(key, after, before, time_ms, current.headers)

        return process

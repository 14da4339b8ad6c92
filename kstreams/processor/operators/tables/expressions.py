"""Aggregates of a table by expressions, whose values are members of their groups.

A member is a row of a store beside that of the aggregates, with the number of table rows that have it, so that a row
which leaves is taken back. If the least or the greatest member leaves, the next one is read from the store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kstreams.expressions import RowAggregation
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.tables.table_aggregate import RowStep, TableAggregator
from kstreams.serdes import MsgpackSerde, Serde
from kstreams.serdes.member_rows import row_prefix
from kstreams.state.column_family import after_prefix
from kstreams.state.rows.ordered_bytes import ordered_bytes

Pair: TypeAlias = tuple[Any, Any]
"""The value by which a pair is chosen, and the value that is returned."""


@dataclass(frozen=True, slots=True)
class ExpressionsOfRows(TableAggregator):
    """Aggregates rows by expressions.

    Parameters
    ----------
    aggregation : RowAggregation
    aggregates : str
        The store of the aggregates, which knows the serde of the groups' keys.
    members : str
        The store of members.
    """

    aggregation: RowAggregation
    aggregates: str
    members: str

    def initial(self) -> Any:
        return self.aggregation.initial

    @property
    def result(self) -> Callable[[Any], Any]:
        return self.aggregation.result

    def bind(self, context: OperatorContext) -> tuple[RowStep, RowStep]:
        aggregation = self.aggregation
        if not aggregation.member_types:
            return _without_members(aggregation.add), _without_members(aggregation.subtract)
        key: Serde = context.state_store(self.aggregates).builder.key
        members = CountedMembers(context.state_store(self.members), aggregation)
        return _within_group(aggregation.add, key, members), _within_group(aggregation.subtract, key, members)


def _without_members(function: Callable[..., Any]) -> RowStep:
    def step(key: Any, row: Any, state: Any) -> Any:
        return function(state, key, row, None)

    return step


def _within_group(function: Callable[..., Any], group: Serde, members: CountedMembers) -> RowStep:
    def step(key: Any, row: Any, state: Any) -> Any:
        members.enter(group.serialize(key))
        return function(state, key, row, members)

    return step


class CountedMembers:
    """The members of the groups of one task, each with the number of rows that have it; a NaN is no member.

    Parameters
    ----------
    store : KeyValueStore of bytes
    aggregation : RowAggregation
    """

    __slots__ = ("_group", "_serdes", "_store")

    def __init__(self, store: Any, aggregation: RowAggregation) -> None:
        self._store = store
        self._serdes = {
            slot: MsgpackSerde(tuple[int, kind])  # type: ignore[valid-type]
            for slot, kind in aggregation.member_types.items()
        }
        self._group = b""

    def enter(self, group: bytes) -> None:
        """Go to a group, by its serialized key."""
        self._group = group

    def added(self, slot: int, value: Any) -> int:
        """Add a value. Return 1 if it is new, else 0."""
        return self._changed(slot, value, 1) == 1

    def removed(self, slot: int, value: Any) -> int:
        """Remove a value once. Return 1 if it is gone, else 0."""
        return self._changed(slot, value, -1) == 0

    def with_least(self, slot: int, value: Any, least: Any) -> Any:
        """Add a value; return the least of all."""
        return value if self._changed(slot, value, 1) == 1 and (least is None or value < least) else least

    def with_greatest(self, slot: int, value: Any, greatest: Any) -> Any:
        """Add a value; return the greatest of all."""
        return value if self._changed(slot, value, 1) == 1 and (greatest is None or value > greatest) else greatest

    def without_least(self, slot: int, value: Any, least: Any) -> Any:
        """Remove a value once; return the least of those that stay, or None."""
        return self._first(slot) if self._changed(slot, value, -1) == 0 and value == least else least

    def without_greatest(self, slot: int, value: Any, greatest: Any) -> Any:
        """Remove a value once; return the greatest of those that stay, or None."""
        return self._first(slot, last=True) if self._changed(slot, value, -1) == 0 and value == greatest else greatest

    def with_least_pair(self, slot: int, pair: Pair, least: Pair | None) -> Pair | None:
        """Add a pair; return the least of all, in the order of their bytes: values may have no order in Python."""
        self._changed(slot, pair, 1)
        return least if least is not None and pair[0] > least[0] else self._first(slot)

    def with_greatest_pair(self, slot: int, pair: Pair, greatest: Pair | None) -> Pair | None:
        """Add a pair; return the greatest of all."""
        self._changed(slot, pair, 1)
        return greatest if greatest is not None and pair[0] < greatest[0] else self._first(slot, last=True)

    def without_least_pair(self, slot: int, pair: Pair, least: Pair | None) -> Pair | None:
        """Remove a pair once; return the least of those that stay, or None."""
        self._changed(slot, pair, -1)
        return least if least is not None and pair[0] > least[0] else self._first(slot)

    def without_greatest_pair(self, slot: int, pair: Pair, greatest: Pair | None) -> Pair | None:
        """Remove a pair once; return the greatest of those that stay, or None."""
        self._changed(slot, pair, -1)
        return greatest if greatest is not None and pair[0] < greatest[0] else self._first(slot, last=True)

    def _changed(self, slot: int, value: Any, by: int) -> int | None:
        """Change the number of a value; return it. None for a NaN, and for a value that is not there."""
        if value != value:  # noqa: PLR0124 (of a NaN alone)
            return None
        row = row_prefix(self._group, slot) + ordered_bytes(value)
        serde = self._serdes[slot]
        data = self._store.get(row)
        if data is None and by < 0:
            return None
        count: int = by if data is None else serde.deserialize(data)[0] + by
        self._store.put(row, serde.serialize((count, value)) if count else None)
        return count

    def _first(self, slot: int, *, last: bool = False) -> Any:
        prefix = row_prefix(self._group, slot)
        for _, data in self._store.first_rows(prefix, after_prefix(prefix), reverse=last):
            return self._serdes[slot].deserialize(data)[1]
        return None

"""Aggregates of a table by expressions, whose values are members of their groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.expressions import RowAggregation
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.aggregation.counted_members import VERSION_BYTES, CountedMembers, version_bytes
from kstreams.processor.operators.aggregation.emission import Results
from kstreams.processor.operators.tables.table_aggregate import RowStep, TableAggregator
from kstreams.serdes import Serde
from kstreams.serdes.member_rows import row_prefix
from kstreams.state.column_family import after_prefix
from kstreams.state.rows.ordered_bytes import ordered_bytes


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
    def result(self) -> Results:
        return Results(self.aggregation.result, self if self.aggregation.lists_members else None)

    def bind(self, context: OperatorContext) -> tuple[RowStep, RowStep]:
        aggregation = self.aggregation
        if not aggregation.member_types:
            return _without_members(aggregation.add), _without_members(aggregation.subtract)
        members = self.open(context)
        context.at_flush(members.remove_dropped)
        return _within_group(aggregation.add, members), _within_group(aggregation.subtract, members)

    def open(self, context: OperatorContext) -> RowMembers:
        """Return the members in one task."""
        key: Serde = context.state_store(self.aggregates).builder.key
        return RowMembers(context.state_store(self.members), key, self.aggregation.member_types)


def _without_members(function: Callable[..., Any]) -> RowStep:
    def step(key: Any, row: Any, state: Any) -> Any:
        return function(state, key, row, None)

    return step


def _within_group(function: Callable[..., Any], members: RowMembers) -> RowStep:
    def step(key: Any, row: Any, state: Any) -> Any:
        members.enter(key)
        return function(state, key, row, members)

    return step


_BY_VALUE = 128
"""Added to a slot: the rows by which the earliest of equal values of a list is found."""
_PRESENT = b"\1"


class RowMembers(CountedMembers):
    """The members of groups of table rows, whose lists lose values.

    A value that leaves a list stays in its row, with the version in which it left, until the next flush: the record
    cache still emits the list before.
    """

    __slots__ = ("_dropped_rows", "_least_version")

    def __init__(self, rows: Any, key: Serde, types: Mapping[int, Any]) -> None:
        super().__init__(rows, key, types)
        self._dropped_rows: list[bytes] = []
        self._least_version = 0  # a list that begins anew has no version of one before, whose rows may be there

    def appended(self, slot: int, value: Any, version: int) -> int:
        following = super().appended(slot, value, max(version, self._least_version))
        self._rows.put(self._by_value(slot, value) + version_bytes(following - 1), _PRESENT)
        return following

    def dropped(self, slot: int, value: Any, version: int) -> int:
        """Remove the earliest of equal values from a list; return its next version."""
        equal_values = self._by_value(slot, value)
        place, _ = next(self._rows.first_rows(equal_values, after_prefix(equal_values)))
        self._rows.put(place, None)
        row = row_prefix(self._group, slot) + place[-VERSION_BYTES:]
        self._rows.put(row, self._serdes[slot].serialize((version, value)))
        self._dropped_rows.append(row)
        self._least_version = max(self._least_version, version + 1)
        return version + 1

    def remove_dropped(self) -> None:
        """Remove the values that have left lists, once no list before is emitted any more."""
        for row in self._dropped_rows:
            self._rows.put(row, None)
        self._dropped_rows.clear()
        self._least_version = 0

    def _by_value(self, slot: int, value: Any) -> bytes:
        return row_prefix(self._group, slot + _BY_VALUE) + ordered_bytes(self._serdes[slot].serialize((0, value)))

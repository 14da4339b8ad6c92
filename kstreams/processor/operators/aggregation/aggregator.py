"""`Aggregator`: the function of an aggregation, and the update of one row by one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kstreams.expressions import Aggregation, merging
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.context.record_functions import ReadingCurrent
from kstreams.processor.operators.aggregation.emission import Emit, MaterializedRows, Results, make_tuple
from kstreams.processor.operators.aggregation.members import MemberRows, Members
from kstreams.processor.operators.first_warning import no_warning
from kstreams.processor.topology.operator import Forward
from kstreams.record import ValueAndTimestamp

Step: TypeAlias = Callable[[Any, Any, Any], Any]
"""`step(key, value, aggregate)`: the aggregate after a record; None deletes it."""

Merger: TypeAlias = Callable[[Any, Any, Any], Any]
"""`merge(key, aggregate, aggregate)`: the aggregate of two sessions. The first call gets the initial aggregate."""

RowUpdate: TypeAlias = Callable[[Any, Any, int], None]
"""`update(key, value, timestamp)`: writes the row of a key after a record, and emits the update."""


@dataclass(frozen=True, slots=True)
class Aggregator:
    """What an aggregation computes, for all operators that have its state.

    Parameters
    ----------
    initial : callable
        The aggregate before the first record.
    step : callable
        `step(key, value, aggregate)`, or with the timestamp as fourth argument if `timed`; None deletes. It may change
        the aggregate in place: stores return values of mutable types as new objects each time.
    merge : callable, optional
        `merge(key, aggregate, aggregate)`, for windows that merge.
    timed : bool
        Whether `step` takes the timestamp.
    result : Results, optional
        What others see of the aggregates, if it is not what is stored.
    warn_of_none : callable
        Called when `step` returns None where there was no aggregate, so that there is nothing to delete.
    members : MemberRows, optional
        Where the members of groups are, if they are rows: `step` takes them after the timestamp.
    """

    initial: Callable[[], Any]
    step: Callable[..., Any]
    merge: Merger | None = None
    timed: bool = False
    result: Results | None = None
    warn_of_none: Callable[[], None] = no_warning
    members: MemberRows | None = None

    @classmethod
    def counting(cls) -> Aggregator:
        """Return the aggregator that counts records.

        Examples
        --------
        >>> counting = Aggregator.counting()
        >>> counting.step("key", "value", counting.initial())
        1
        """
        return cls(int, _add_one, merge=_sum)

    @classmethod
    def reducing(cls, reducer: Callable[[Any, Any], Any], warn_of_none: Callable[[], None] = no_warning) -> Aggregator:
        """Return the aggregator that combines values by `reducer(aggregate, value)`.

        Examples
        --------
        >>> reducing = Aggregator.reducing(max)
        >>> reducing.step("key", 3, reducing.step("key", 5, reducing.initial()))
        5
        """

        def step(key: object, value: object, aggregate: object) -> Any:
            return value if aggregate is NoValue else reducer(aggregate, value)

        def merge(key: object, aggregate: object, other: object) -> Any:
            if aggregate is NoValue:
                return other
            merged = reducer(aggregate, other)
            return NoValue if merged is None else merged

        return cls(_no_value, step, merge=merge, warn_of_none=warn_of_none)

    @classmethod
    def of_expressions(cls, aggregation: Aggregation) -> Aggregator:
        """Return the aggregator that computes expressions, and whose states have the members of their groups."""
        merge_states = merging(aggregation)
        return cls(
            aggregation.initial,
            _step_of_expressions(aggregation),
            merge=lambda key, state, other: merge_states(state, other),
            timed=True,
            result=Results(aggregation.result),
        )

    @classmethod
    def with_members(cls, aggregation: Aggregation, members: MemberRows) -> Aggregator:
        """Return the aggregator that computes expressions, with the members of groups as rows."""
        step = _step_with_members(aggregation)
        result = Results(aggregation.result, members if aggregation.lists_members else None)
        return cls(aggregation.initial, step, timed=True, result=result, members=members)

    def bind(self) -> tuple[Step, Callable[[Forward], Forward]]:
        """Return `step(key, value, aggregate)`, and a wrapper for the closure that calls it."""
        return _with_time(self.step) if self.timed else (self.step, _unchanged)

    def row_updater(
        self, context: OperatorContext, table_rows: MaterializedRows
    ) -> tuple[RowUpdater, Callable[[Forward], Forward]]:
        """Return what binds the update of rows in one task, and a wrapper for the closure that calls the updates."""
        members = None if self.members is None else self.members.open(context)
        step, wrap = self.bind() if members is None else _with_time(_given_members(self.step, members))
        return RowUpdater(self, step, context.current, table_rows.uses_cache(context), members), wrap


@dataclass(frozen=True, slots=True)
class RowUpdater:
    """Binds the update of rows in one task.

    Parameters
    ----------
    aggregator : Aggregator
    step : callable
        From `Aggregator.bind`.
    current : CurrentRecord
    cached : bool
        Whether updates pass through the record cache: a tombstone then has the timestamp of its record, else that of
        the row.
    members : Members or None
        The members of groups, if they are rows.
    """

    aggregator: Aggregator
    step: Step
    current: CurrentRecord
    cached: bool
    members: Members | None = None

    def bind(
        self, get: Callable[[Any], Any], put: Callable[[Any, Any], Any], emit: Emit, start_ms: int = 0
    ) -> RowUpdate:
        """Return the update of the rows that `get(key)` reads and `put(key, row)` writes; `emit` gets the updates.

        `start_ms` is the start of the window, if all rows are of one.

        Kafka Streams without the record cache emits the initial aggregate as the old value of a new row, this not.
        """
        update = self._update(get, put, emit)
        return update if self.members is None else _in_group(self.members, start_ms, update)

    def _update(self, get: Callable[[Any], Any], put: Callable[[Any, Any], Any], emit: Emit) -> RowUpdate:
        step = self.step
        initial = self.aggregator.initial
        warn_of_none = self.aggregator.warn_of_none
        current = self.current
        cached = self.cached

        def update(key: Any, value: Any, timestamp: int) -> None:
            row = get(key)
            if row is None:
                old = None
                latest = timestamp
                new = step(key, value, initial())
            else:
                old, latest = row
                latest = timestamp if timestamp > latest else latest
                new = step(key, value, old)
            if new is None:
                if row is None:
                    warn_of_none()
                put(key, None)
                latest = timestamp if cached else latest
            else:
                put(key, make_tuple(ValueAndTimestamp, (new, latest)))
            emit(key, new, old, latest, current.headers)

        return update


class NoValue:
    """The aggregate of no values in a reduction; a class, since pickling would copy an object."""


def _no_value() -> object:
    return NoValue


def _add_one(key: object, value: object, count: int) -> int:
    return count + 1


def _sum(key: object, count: int, other: int) -> int:
    return count + other


def _step_of_expressions(aggregation: Aggregation) -> Callable[[Any, Any, Any, int], Any]:
    add = aggregation.add

    def step(key: object, value: object, state: object, timestamp: int) -> Any:
        return add(state, key, value, timestamp)

    def step_of_record(key: object, value: object, state: object, timestamp: int, record: object) -> Any:
        return add(state, key, value, timestamp, record)

    return ReadingCurrent(step_of_record) if aggregation.reads_current_record else step


def _step_with_members(aggregation: Aggregation) -> Callable[..., Any]:
    add = aggregation.add

    def step(key: object, value: object, state: object, timestamp: int, members: Members) -> Any:
        return add(state, key, value, timestamp, members)

    def step_of_record(
        key: object, value: object, state: object, timestamp: int, members: Members, record: object
    ) -> Any:
        return add(state, key, value, timestamp, members, record)

    return ReadingCurrent(step_of_record) if aggregation.reads_current_record else step


def _given_members(step: Callable[..., Any], members: Members) -> Callable[[Any, Any, Any, int], Any]:
    def step_with_members(key: object, value: object, aggregate: object, timestamp: int) -> Any:
        return step(key, value, aggregate, timestamp, members)

    return step_with_members


def _in_group(members: Members, start_ms: int, update: RowUpdate) -> RowUpdate:
    enter = members.enter_window

    def update_group(key: Any, value: Any, timestamp: int) -> None:
        enter(key, start_ms)
        update(key, value, timestamp)

    return update_group


def _unchanged(process: Forward) -> Forward:
    return process


def _with_time(step: Callable[[Any, Any, Any, int], Any]) -> tuple[Step, Callable[[Forward], Forward]]:
    """Return the step as a function of three arguments, and a wrapper that tells it the timestamp of the record."""
    record_ms = 0

    def step_at_record_time(key: object, value: object, aggregate: object) -> Any:
        return step(key, value, aggregate, record_ms)

    def set_record_time(process: Forward) -> Forward:
        def process_at(key: object, value: object, timestamp: int) -> None:
            nonlocal record_ms
            record_ms = timestamp
            process(key, value, timestamp)

        return process_at

    return step_at_record_time, set_record_time

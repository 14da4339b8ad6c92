"""`Aggregator`: the function of an aggregation, and the update of one row by one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kstreams.processor.operators.aggregation.emission import make_tuple
from kstreams.processor.operators.first_warning import no_warning
from kstreams.processor.topology.operator import Forward
from kstreams.record import ValueAndTimestamp

Step: TypeAlias = Callable[[Any, Any, Any], Any]
"""`step(key, value, aggregate)`: the aggregate after a record; None deletes it."""

RowUpdate: TypeAlias = Callable[[Any, Any, int, Any], Any]
"""`updated(key, value, timestamp, row)`: the row after a record, and the timestamp of the update that it causes.

A `ValueAndTimestamp`, whose value is None if the row is deleted. `row` is None if there is no row yet.
"""


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
    timed : bool
        Whether `step` takes the timestamp.
    result : callable, optional
        What others see of the aggregate that is stored.
    gave_nothing : callable
        Called when `step` returns None where there was no aggregate, so that there is nothing to delete.
    """

    initial: Callable[[], Any]
    step: Callable[..., Any]
    timed: bool = False
    result: Callable[[Any], Any] | None = None
    gave_nothing: Callable[[], None] = no_warning

    def bind(self) -> tuple[Step, Callable[[Forward], Forward]]:
        """Return `step(key, value, aggregate)`, and a wrapper for the closure that calls it."""
        return _with_time(self.step) if self.timed else (self.step, _unchanged)

    def row_update(self, step: Step, *, cached: bool) -> RowUpdate:
        """Return the function that updates a row by a record.

        Parameters
        ----------
        step : callable
            From `bind`.
        cached : bool
            Whether updates pass through the record cache: a tombstone then has the timestamp of its record, else that
            of the row.
        """
        initial = self.initial
        gave_nothing = self.gave_nothing

        def updated(key: Any, value: Any, timestamp: int, row: Any) -> Any:
            if row is None:
                latest = timestamp
                new = step(key, value, initial())
                if new is None:
                    gave_nothing()
            else:
                aggregate, latest = row
                latest = max(latest, timestamp)
                new = step(key, value, aggregate)
                if new is None and cached:
                    latest = timestamp
            return make_tuple(ValueAndTimestamp, (new, latest))

        return updated


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

"""Delays and throttles: a record is forwarded when the wall clock reaches its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.kernel.durations import time_ms
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.stateless import Takes
from kstreams.processor.operators.waiting.due_records import DueRecords
from kstreams.processor.operators.waiting.records import WaitingRecords
from kstreams.processor.topology.operator import Forward
from kstreams.state.kinds.waiting_records import WaitingRecordStore

_LAST_MS = 2**62


class Delayed:
    """The waiting records of one operator, and the timer that forwards each at its time.

    Parameters
    ----------
    context : OperatorContext
    store : str
    forward : callable
    """

    def __init__(self, context: OperatorContext, store: str, forward: Forward) -> None:
        opened: WaitingRecordStore = context.state_store(store)
        self._context = context
        self._current = context.current
        self._clock = context.task.application.clock
        self._records = WaitingRecords(opened, context.current)
        self._due = DueRecords(opened)
        self._forward = forward
        self._timer = context.timer(self._release)
        self._timer.set(self._due.next_due_ms)
        context.report_waits(self._due.waits)

    @property
    def count(self) -> int:
        """The number of waiting records."""
        return self._due.count

    def forward_at(self, due_ms: int, key: object, value: object, timestamp: int) -> None:
        """Forward the current record at a wall-clock time, at once if it is past; earlier ones first."""
        now_ms = self._clock.wall_ms()
        if due_ms > now_ms:
            record = self._records.of_current(key, value, timestamp, since_ms=now_ms, due_ms=min(due_ms, _LAST_MS))
            self._due.add(record)
            self._timer.set(self._due.next_due_ms)
            return
        if self._due.next_due_ms <= now_ms:
            self._release(now_ms)
        self._forward(key, value, timestamp)

    def _release(self, now_ms: int) -> None:
        try:
            for record in self._context.sending_meanwhile(self._due.take_until(now_ms)):
                held = self._records.to_forward(record)
                self._current.forward_held(self._forward, held, held.value)
        finally:
            self._timer.set(self._due.next_due_ms)


@dataclass(frozen=True, slots=True)
class DelayOperator(ClosureOperator):
    """Forwards each record at a time of its own.

    Parameters
    ----------
    store : str
        Holds the waiting records.
    until : callable or None
        Returns the wall-clock time of a record: milliseconds, a datetime, or None for at once.
    for_ms : int
        Without `until`: the time of a record is its timestamp plus this.
    takes : Takes
        The arguments of `until`.
    """

    store: str
    until: Callable[..., Any] | None = None
    for_ms: int = 0
    takes: Takes = Takes.KEY_VALUE

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        delayed = Delayed(context, self.store, forward)
        due_of = self._due_of()

        def delay(key: object, value: object, timestamp: int) -> None:
            delayed.forward_at(due_of(key, value, timestamp), key, value, timestamp)

        return delay

    def _due_of(self) -> Callable[[object, object, int], int]:
        until = self.until
        for_ms = self.for_ms
        if until is None:
            return lambda key, value, timestamp: timestamp + for_ms
        if self.takes is Takes.RECORD:
            return lambda key, value, timestamp: _time_of(until(key, value, timestamp))
        return lambda key, value, timestamp: _time_of(until(key, value))


def _time_of(result: Any) -> int:
    return 0 if result is None else time_ms(result)


@dataclass(frozen=True, slots=True)
class ThrottleOperator(ClosureOperator):
    """Forwards at most a number of records in a time, evenly spread; the others wait in order.

    Parameters
    ----------
    store : str
    records : int
    per_ms : int
    """

    store: str
    records: int
    per_ms: int

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        delayed = Delayed(context, self.store, forward)
        clock = context.task.application.clock
        rate = self.records
        per_ms = self.per_ms
        next_free = -1
        """The next free time, in milliseconds times `rate`, so that no fraction is lost."""

        def throttle(key: object, value: object, timestamp: int) -> None:
            nonlocal next_free
            now = clock.wall_ms() * rate
            # After the clock was set back, the next free time is not later than the waiting records need.
            free = max(now, min(next_free, now + delayed.count * per_ms + per_ms))
            next_free = free + per_ms
            delayed.forward_at(-(-free // rate), key, value, timestamp)

        next_free = context.keep_in_metadata("next_free", lambda: next_free)
        return throttle

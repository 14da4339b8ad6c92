"""Punctuation: schedules of callbacks at intervals of time. Pure logic, without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from kstreams.errors import TopologyError
from kstreams.kernel import java_priority_queue

NEVER = 2**63 - 1
"""A time (ms) after every timestamp: the deadline of an empty schedule."""


class PunctuationType(Enum):
    """The time that a punctuator follows: stream time or wall-clock time."""

    STREAM_TIME = "stream-time"
    WALL_CLOCK_TIME = "wall-clock-time"


@dataclass(slots=True, eq=False)
class Cancellable:
    """A scheduled punctuator; `cancel()` ends it, also from within its own callback."""

    interval_ms: int
    callback: Callable[[int], None]
    cancelled: bool = False
    deadline_ms: int = NEVER

    def cancel(self) -> None:
        """Stop calling the punctuator."""
        self.cancelled = True


def schedule_of(interval_ms: int, callback: Callable[[int], None]) -> Cancellable:
    """Return a punctuator that is called at intervals.

    Raises
    ------
    TopologyError
        If the interval is shorter than one millisecond.
    """
    if interval_ms < 1:
        raise TopologyError(f"A punctuator needs an interval of at least 1 ms; it got {interval_ms}.")
    return Cancellable(interval_ms, callback)


class Punctuations:
    """The punctuators of one task for one kind of time; punctuators due at the same time run in Java's order.

    Examples
    --------
    >>> punctuations = Punctuations()
    >>> punctuations.add(0, schedule_of(10, print))
    >>> punctuations.fire(25), punctuations.fire(29), punctuations.deadline_ms
    25
    (True, False, 30)
    """

    __slots__ = ("_is_stopped", "_queue", "deadline_ms")

    def __init__(self) -> None:
        self._is_stopped = False
        self._queue: list[tuple[int, Cancellable]] = []
        self.deadline_ms = NEVER

    def __iter__(self) -> Iterator[Cancellable]:
        """Yield the schedules in the order of the queue. Adding them in this order creates the same queue."""
        return (schedule for _, schedule in self._queue)

    def add(self, first_ms: int, schedule: Cancellable) -> None:
        """Call a punctuator when the time reaches `first_ms`, and then each interval."""
        schedule.deadline_ms = first_ms
        java_priority_queue.push(self._queue, (first_ms, schedule))
        self._look_ahead()

    def fire(self, now_ms: int) -> bool:
        """Call each punctuator that is due once with the current time, earliest deadline first; return whether one was
        due.
        """
        fired = False
        while self.deadline_ms <= now_ms and not self._is_stopped:
            deadline_ms, schedule = java_priority_queue.pop(self._queue)
            if not schedule.cancelled:
                fired = True
                schedule.callback(now_ms)
            if not schedule.cancelled:
                self.add(next_deadline(deadline_ms, schedule.interval_ms, now_ms), schedule)
            self._look_ahead()
        return fired

    def stop(self) -> None:
        """Call no further punctuator after the one that is running; callable from any thread."""
        self._is_stopped = True

    def _look_ahead(self) -> None:
        self.deadline_ms = self._queue[0][0] if self._queue else NEVER


def next_deadline(deadline_ms: int, interval_ms: int, now_ms: int) -> int:
    """Return the first deadline after `now_ms`. Missed deadlines are skipped; the phase stays.

    Examples
    --------
    >>> next_deadline(10, 5, 10), next_deadline(10, 5, 22)
    (15, 25)
    """
    return deadline_ms + (max(now_ms - deadline_ms, 0) // interval_ms + 1) * interval_ms

"""`TaskPunctuations`: the punctuators of one task, by stream time and by wall-clock time, and its `Timer`s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kstreams.kernel.clock import Clock
from kstreams.processor.api.punctuation import NEVER, Cancellable, Punctuations, PunctuationType, schedule_of


class Timer:
    """One call at a wall-clock time, which an operator sets and moves. It calls nothing unless it is set.

    Parameters
    ----------
    punctuations : Punctuations
    callback : callable
        Takes the current time in milliseconds.

    Examples
    --------
    >>> punctuations = Punctuations()
    >>> timer = Timer(punctuations, print)
    >>> timer.set(30)
    >>> timer.set(20)
    >>> punctuations.fire(10), punctuations.fire(25), punctuations.fire(99), timer.deadline_ms == NEVER
    25
    (False, True, False, True)
    """

    __slots__ = ("_callback", "_punctuations", "_schedule")

    def __init__(self, punctuations: Punctuations, callback: Callable[[int], None]) -> None:
        self._punctuations = punctuations
        self._callback = callback
        self._schedule = schedule_of(1, self._call)

    @property
    def deadline_ms(self) -> int:
        """The time of the call; `NEVER` if the timer is not set."""
        return NEVER if self._schedule.cancelled else self._schedule.deadline_ms

    def set(self, deadline_ms: int) -> None:
        """Call at this time instead of any other; `NEVER` for no call."""
        if deadline_ms == self.deadline_ms:
            return
        self._schedule.cancel()
        if deadline_ms != NEVER:
            self._schedule = schedule_of(1, self._call)
            self._punctuations.add(deadline_ms, self._schedule)

    def _call(self, now_ms: int) -> None:
        self._schedule.cancel()
        self._callback(now_ms)


class TaskPunctuations:
    """The schedules of the processors of one task.

    Parameters
    ----------
    clock : Clock
    deadlines : mapping of str to int
        The result of `deadlines()` of an earlier instance. Punctuators that are scheduled in `init` keep their phase,
        and their order if several are due at once.
    """

    __slots__ = ("_clock", "_deadlines", "_in_init", "_is_bound", "_timers", "stream_time", "wall_clock")

    def __init__(self, clock: Clock, deadlines: Mapping[str, int]) -> None:
        self.stream_time = Punctuations()
        self.wall_clock = Punctuations()
        self._clock = clock
        self._deadlines = deadlines
        self._is_bound = False
        self._in_init: dict[str, _InInit] = {}
        self._timers: dict[str, Timer] = {}

    def schedule(
        self, node: str, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]
    ) -> Cancellable:
        """Call `callback(time)` at intervals; the first call is at the same time as in Kafka Streams.

        Stream time starts at the epoch, so that the first record causes a call; the first call in wall-clock time is
        after one interval.
        """
        by_stream_time = kind is PunctuationType.STREAM_TIME
        punctuations = self.stream_time if by_stream_time else self.wall_clock
        first_ms = 0 if by_stream_time else self._clock.wall_ms() + interval_ms
        schedule = schedule_of(interval_ms, callback)
        if self._is_bound:
            punctuations.add(first_ms, schedule)
        else:
            name = f"{node}:punctuator:{len(self._in_init)}"
            self._in_init[name] = _InInit(node, punctuations, self._deadlines.get(name, first_ms), schedule)
        return schedule

    def timer(self, node: str, callback: Callable[[int], None]) -> Timer:
        """Return a timer of wall-clock time, which is not set."""
        timer = Timer(self.wall_clock, callback)
        self._timers[f"{node}:timer:{len(self._timers)}"] = timer
        return timer

    def end_of_init(self, nodes: Sequence[str]) -> None:
        """Start the punctuators of `init` after all processors are initialised. Later ones are not carried over.

        Operators are bound children first. Kafka Streams initialises them in the order of `nodes`.
        """
        rank = {node: at for at, node in enumerate(nodes)}

        def place(name: str) -> tuple[int, int]:
            return self._deadlines.get(_place(name), -1), rank[self._in_init[name].node]

        for name in sorted(self._in_init, key=place):
            _, punctuations, first_ms, schedule = self._in_init[name]
            punctuations.add(first_ms, schedule)
        self._is_bound = True

    def deadlines(self) -> dict[str, int]:
        """Return the next deadline of each punctuator of `init`, in ms of its time, and its place in the queue.

        Deadlines of timers are among them, so that a task whose timer is set does not rest.
        """
        places = {schedule: at for at, schedule in enumerate([*self.stream_time, *self.wall_clock])}
        due = {name: entry.schedule for name, entry in self._in_init.items() if not entry.schedule.cancelled}
        times = {name: schedule.deadline_ms for name, schedule in due.items()}
        timers = {name: timer.deadline_ms for name, timer in self._timers.items() if timer.deadline_ms != NEVER}
        return times | timers | {_place(name): places.get(schedule, 0) for name, schedule in due.items()}


class _InInit(NamedTuple):
    """A punctuator that was scheduled in `init`: its node, its queue, its first deadline."""

    node: str
    punctuations: Punctuations
    first_ms: int
    schedule: Cancellable


def _place(name: str) -> str:
    return f"{name}:place"

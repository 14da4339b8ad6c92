"""`TaskPunctuations`: the punctuators of one task, by stream time and by wall-clock time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kstreams.clock import Clock
from kstreams.processor.api.punctuation import Cancellable, Punctuations, PunctuationType


class TaskPunctuations:
    """Schedules of the processors of one task.

    Parameters
    ----------
    clock : Clock
    deadlines : mapping of str to int
        What `deadlines()` of an earlier instance gave: punctuators that are scheduled in `init` keep their rhythm.
    """

    __slots__ = ("_clock", "_deadlines", "_in_init", "_is_bound", "stream_time", "wall_clock")

    def __init__(self, clock: Clock, deadlines: Mapping[str, int]) -> None:
        self.stream_time, self.wall_clock = Punctuations(), Punctuations()
        self._clock, self._deadlines, self._is_bound = clock, deadlines, False
        self._in_init: dict[str, Cancellable] = {}  # those that were scheduled in `init`

    def schedule(
        self, node: str, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]
    ) -> Cancellable:
        """Call `callback(time)` at intervals; the first time as Kafka Streams does.

        Stream time starts at the epoch, so that it fires with the first record; wall-clock time after one interval.
        """
        by_stream_time = kind is PunctuationType.STREAM_TIME
        punctuations = self.stream_time if by_stream_time else self.wall_clock
        first_ms = 0 if by_stream_time else self._clock.wall_ms() + interval_ms
        if self._is_bound:
            return punctuations.schedule(first_ms, interval_ms, callback)
        key = f"{node}:punctuator:{len(self._in_init)}"
        made = punctuations.schedule(self._deadlines.get(key, first_ms), interval_ms, callback)
        self._in_init[key] = made
        return made

    def end_of_init(self) -> None:
        """All processors are initialised: what is scheduled from now on is not carried over to another instance."""
        self._is_bound = True

    def deadlines(self) -> dict[str, int]:
        """When each punctuator of `init` is due next, in ms of its kind of time."""
        return {name: made.deadline_ms for name, made in self._in_init.items() if not made.cancelled}

"""`TaskTime`: the punctuators of a task, and its stream time while input is idle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kstreams.kernel.clock import Clock
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.task.idle import WHOLE_TASK, idle_input
from kstreams.processor.topology.nodes import SubTopology


class TaskTime:
    """Stream time and wall-clock time of one task.

    Parameters
    ----------
    sub_topology : SubTopology
    context : TaskContext
    at_idle : iterable of (str, callable)
        By operator, parents before children, the function that advances its stream time by some ms.
    release_held_back : callable
        Forwards the records that operators hold back; it is called before any punctuator.
    deadlines : mapping of str to int
        The result of `deadlines()` of an earlier instance.
    """

    def __init__(
        self,
        sub_topology: SubTopology,
        context: TaskContext,
        at_idle: Iterable[tuple[str, Callable[[int], bool]]],
        release_held_back: Callable[[], None],
        deadlines: Mapping[str, int],
    ) -> None:
        self._clock: Clock = context.application.clock
        self._current: CurrentRecord = context.current
        self._punctuations = context.punctuations
        self._release_held_back = release_held_back
        self._at_idle: dict[str, Callable[[int], bool]] = {**dict(at_idle), WHOLE_TASK: self._advance}
        limit_ms = context.application.settings.idle_timeout_ms
        self._idle = idle_input(sub_topology, self._at_idle, limit_ms, self._clock.uptime_ms(), deadlines)
        self.by_stream_time = context.punctuations.stream_time

    def seen(self, source: str) -> None:
        """Note that a record of a source has come, or may still come."""
        if self._idle is not None:
            self._idle.seen(source, self._clock.uptime_ms())

    def idle_moves(self) -> dict[str, int]:
        """Return the advance of stream time by operator, in ms, while its input is idle."""
        return {} if self._idle is None else self._idle.moves(self._clock.uptime_ms())

    def move(self, moves: Mapping[str, int]) -> bool:
        """Advance the stream time of operators; return whether they may have forwarded records."""
        return any([advance(moves[node]) for node, advance in self._at_idle.items() if node in moves])

    def punctuate_by_stream_time(self) -> None:
        """Call the punctuators that are due at the stream time of the current record; no record is current then."""
        stream_time = self._current.stream_time
        self._release_held_back()
        cursor = self._current.suspend()
        self.by_stream_time.fire(stream_time)
        if cursor is not None:
            self._current.move_to(cursor)

    def punctuate_by_wall_clock(self) -> bool:
        """Call the punctuators that are due; return whether there was one."""
        self._release_held_back()
        return self._punctuations.wall_clock.fire(self._clock.wall_ms())

    def deadlines(self) -> dict[str, int]:
        """Return the next deadline of each punctuator of `init`, in ms of its time, and since when input is idle."""
        due = self._punctuations.deadlines()
        return due if self._idle is None else due | self._idle.times()

    def stop(self) -> None:
        """Call no further punctuator of wall-clock time; callable from another thread."""
        self._punctuations.wall_clock.stop()

    def _advance(self, elapsed_ms: int) -> bool:
        """Advance the stream time of the task, which processors read."""
        return self._current.advance(elapsed_ms) and self.by_stream_time.fire(self._current.stream_time)

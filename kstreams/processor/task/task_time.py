"""`TaskTime`: the punctuators of a task, and its stream time while input is idle.

A source is idle if it had no record for its limit. If all sources are idle whose records reach an operator, or an
operator that shares a store with it, its stream time advances by the wall-clock time since its last input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from kstreams.kernel.clock import Clock
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.operator_context import TaskContext
from kstreams.processor.topology.barriers import feeding
from kstreams.processor.topology.nodes import SourceNode, SubTopology

NEVER_IDLE = -1
_SINCE = "idle_since:"
_MOVED = "idle_moved:"
WHOLE_TASK = ""
"""The name of the step that stands for the task: the stream time that processors read."""


class IdleInput:
    """The advance of stream time of each step while input is idle.

    Parameters
    ----------
    limits_ms : mapping of str to int
        By source, the time without records after which it is idle; negative: never.
    feeds : mapping of str to set of str
        By step, the sources whose records reach it.
    now_ms : int
        The wall-clock time at the start; no source is idle before it.
    saved_times : mapping of str to int, optional
        The result of `times` of the instance that this one continues.

    Examples
    --------
    >>> idle = IdleInput({"a": 10, "b": 30}, {"count": {"a"}, "join": {"a", "b"}}, now_ms=0)
    >>> idle.moves(9), idle.moves(20), idle.moves(30)
    ({}, {'count': 20}, {'count': 10, 'join': 30})
    >>> idle.seen("a", 35)
    >>> idle.moves(40), idle.moves(45)
    ({}, {'count': 10, 'join': 10})
    """

    def __init__(
        self,
        limits_ms: Mapping[str, int],
        feeds: Mapping[str, set[str]],
        now_ms: int,
        saved_times: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._limits_ms = limits_ms
        self._feeds = {step: sources for step, sources in feeds.items() if all(limits_ms[s] >= 0 for s in sources)}
        self._since_ms = {source: saved_times.get(f"{_SINCE}{source}", now_ms) for source in limits_ms}
        self._moved_ms = {
            step: saved_times.get(f"{_MOVED}{step}", now_ms) for step in feeds
        }  # the wall-clock time up to which its stream time has advanced

    def seen(self, source: str, now_ms: int) -> None:
        """Note that a record of a source has come, or waits to be read."""
        self._since_ms[source] = now_ms

    def moves(self, now_ms: int) -> dict[str, int]:
        """Return the advance of stream time by step, in ms. Call it once for each moment."""
        moves = {}
        for step, sources in self._feeds.items():
            if all(now_ms - self._since_ms[source] >= self._limits_ms[source] for source in sources):
                since_ms = max([self._moved_ms[step], *(self._since_ms[source] for source in sources)])
                self._moved_ms[step] = now_ms
                if now_ms > since_ms:
                    moves[step] = now_ms - since_ms
        return moves

    def times(self) -> dict[str, int]:
        """Return the times that another instance needs to continue."""
        since = {f"{_SINCE}{source}": at for source, at in self._since_ms.items()}
        return since | {f"{_MOVED}{step}": at for step, at in self._moved_ms.items()}


def idle_input(
    sub_topology: SubTopology, nodes: Iterable[str], limit_ms: int, now_ms: int, saved_times: Mapping[str, int]
) -> IdleInput | None:
    """Return the idle input of a task; None if no source is ever idle. `limit_ms` is the default limit of sources."""
    limits_ms = {source.name: limit_of(source, limit_ms) for source in sub_topology.sources}
    if all(limit < 0 for limit in limits_ms.values()):
        return None
    return IdleInput(limits_ms, {node: feeding(sub_topology, node) for node in nodes}, now_ms, saved_times)


def limit_of(source: SourceNode, default_ms: int) -> int:
    """Return the time (ms) after which a source is idle, negative for never. An internal topic waits for its inputs."""
    limits = [default_ms if limit is None else limit for limit in source.idle_ms]
    return max(limits) if min(limits) >= 0 else NEVER_IDLE


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

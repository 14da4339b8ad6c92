"""Idle input: stream time goes on with the wall clock where no records come. Pure logic, no clock.

A source is idle once no record of it came for its limit. When all sources are idle from which records reach an
operator, or those it shares a store with, its stream time moves by the wall-clock time since its last input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kstreams.processor.topology.barriers import feeding
from kstreams.processor.topology.nodes import SourceNode, SubTopology

NEVER_IDLE = -1
_SINCE = "idle_since:"
_MOVED = "idle_moved:"
WHOLE_TASK = ""
"""Stands among the steps for the task itself: the stream time that processors see."""


class IdleInput:
    """How far the time of each step moves.

    Parameters
    ----------
    limits_ms : mapping of str to int
        By source: after how long without records it is idle; negative: never.
    feeds : mapping of str to set of str
        By step: the sources from which records reach it.
    now_ms : int
        Where the wall clock stands: before that nothing was idle.
    kept : mapping of str to int, optional
        What `times` gave, when this goes on where another instance left off.

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
        kept: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._limits_ms = limits_ms
        self._feeds = {step: sources for step, sources in feeds.items() if all(limits_ms[s] >= 0 for s in sources)}
        self._since_ms = {source: kept.get(f"{_SINCE}{source}", now_ms) for source in limits_ms}
        self._moved_ms = {step: kept.get(f"{_MOVED}{step}", now_ms) for step in feeds}  # to where its time was moved

    def seen(self, source: str, now_ms: int) -> None:
        """A record of a source has come, or waits to be read."""
        self._since_ms[source] = now_ms

    def moves(self, now_ms: int) -> dict[str, int]:
        """By step, in ms: how far its stream time moves now. To be called once for each moment."""
        moves = {}
        for step, sources in self._feeds.items():
            if all(now_ms - self._since_ms[source] >= self._limits_ms[source] for source in sources):
                since_ms = max([self._moved_ms[step], *(self._since_ms[source] for source in sources)])
                self._moved_ms[step] = now_ms
                if now_ms > since_ms:
                    moves[step] = now_ms - since_ms
        return moves

    def times(self) -> dict[str, int]:
        """What another instance needs to go on where this one leaves off."""
        since = {f"{_SINCE}{source}": at for source, at in self._since_ms.items()}
        return since | {f"{_MOVED}{step}": at for step, at in self._moved_ms.items()}


def idle_input(
    sub_topology: SubTopology, nodes: Iterable[str], limit_ms: int, now_ms: int, kept: Mapping[str, int]
) -> IdleInput | None:
    """How far time moves in a task while its input is idle (`limit_ms`: the default of sources); None: it never is."""
    limits_ms = {source.name: limit_of(source, limit_ms) for source in sub_topology.sources}
    if all(limit < 0 for limit in limits_ms.values()):
        return None
    return IdleInput(limits_ms, {node: feeding(sub_topology, node) for node in nodes}, now_ms, kept)


def limit_of(source: SourceNode, default_ms: int) -> int:
    """After how long (ms) a source is idle, negative: never. An internal topic waits for all that feeds it."""
    limits = [default_ms if limit is None else limit for limit in source.idle_ms]
    return max(limits) if min(limits) >= 0 else NEVER_IDLE

"""`JoinSide` and `JoinProgress`: what joins of two streams have in common, whichever records meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.topology.operator import Forward


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of a join.

    Parameters
    ----------
    left : bool
        True for the left side.
    other_store : str
        The window store with the records of the other side.
    joiner : callable
        `joiner(key, left, right)`.
    """

    left: bool
    other_store: str
    joiner: Callable[[Any, Any, Any], Any]

    def join(self) -> Callable[[Any, Any, Any], Any]:
        """Return the joiner as `join(key, this, other)`."""
        joiner = self.joiner
        return joiner if self.left else lambda key, this, other: joiner(key, other, this)

    def forward_unmatched(self, context: OperatorContext, forward: Forward, rows: Iterable[Any]) -> int:
        """Forward rows of both sides that have no match, each with its own timestamp.

        Parameters
        ----------
        rows : iterable of (key, value, timestamp, left)

        Returns
        -------
        int
            The timestamp of the last row; -1 if there was none.
        """
        joiner = self.joiner
        last = -1
        for key, value, timestamp, left in context.sending_meanwhile(rows):
            forward(key, joiner(key, value, None) if left else joiner(key, None, value), timestamp)
            last = timestamp
        return last


class JoinProgress:
    """The times that both sides of one join share.

    Parameters
    ----------
    first_waiting : int
        The initial value.

    Attributes
    ----------
    stream_time : int
        The greatest time of the records of both sides; -1 before the first record.
    first_waiting : int
        The time of the first record without a match that waits, as far as the join knows it.
    advances_when_idle : bool
        True once one of both sides advances the stream time while input is idle.
    """

    __slots__ = ("advances_when_idle", "first_waiting", "stream_time")

    def __init__(self, first_waiting: int) -> None:
        self.stream_time = -1
        self.first_waiting = first_waiting
        self.advances_when_idle = False

    def advance_when_idle(self, context: OperatorContext, emit_expired: Callable[[], bool]) -> None:
        """Let the stream time advance while input is idle. One of both sides is enough."""
        if self.advances_when_idle:
            return
        self.advances_when_idle = True

        def pass_time(elapsed_ms: int) -> bool:
            if self.stream_time < 0:
                return False
            self.stream_time += elapsed_ms
            return emit_expired()

        context.at_idle(pass_time)

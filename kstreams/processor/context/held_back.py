"""`HeldBack`: what a step holds back whose results come later, such as those of async calls or of a batch.

Each record goes on as if it had just been read: with its own headers, its place in the input and its stream time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.context.record_cursor import RecordCursor
from kstreams.processor.topology.barriers import Barrier
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers

Order: TypeAlias = bool | Literal["by_key"]
"""True: results go on in the order of their records; "by_key": in that of the records of one key; False: in any."""


class HeldRecord(NamedTuple):
    """A record, and what the task's context says of it."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers
    run: RecordCursor | None


W = TypeVar("W")


class HeldBack(ABC, Generic[W]):
    """What one step of one task holds back; all of it has gone on before a commit, and before time moves on.

    Parameters
    ----------
    context : OperatorContext
        Of the step.

    Attributes
    ----------
    waiting : deque
        What is held back, oldest first.
    is_releasing : bool
        Whether results are going on at this moment.
    """

    def __init__(self, context: OperatorContext) -> None:
        self.waiting: deque[W] = deque()
        self.is_releasing = False
        self._task = context.task
        context.task.delayed[context.node] = self
        context.at_flush(self.release_all)

    def release_all(self) -> None:
        """Let all results go on that still wait."""
        if self.waiting and not self.is_releasing:
            self.release_until(0)

    def release_until(self, waiting: int) -> None:
        """Let results go on until only so many records wait."""
        self.is_releasing = True
        try:
            while len(self.waiting) > waiting:
                self.release_next()
        finally:
            self.is_releasing = False

    @abstractmethod
    def release_next(self) -> None:
        """Let at least one record that waits go on."""

    def hold(self, key: Any, value: Any, timestamp: int) -> HeldRecord:
        """The current record with what belongs to it."""
        task = self._task
        return HeldRecord(key, value, timestamp, task.headers, None if task.run is None else task.run.here())

    def forward_held(self, forward: Forward, kept: HeldRecord, value: Any) -> None:
        """Pass a kept record on under a new value."""
        task = self._task
        run, headers = task.run, task.headers
        task.run, task.headers = kept.run, kept.headers
        forward(kept.key, value, kept.timestamp)
        task.run, task.headers = run, headers  # after a failure they stay: it is told of the record that failed


def release_before(barriers: Sequence[Barrier], held: Mapping[str, HeldBack[Any]]) -> Callable[[], None]:
    """What is called before a node takes a record that must not overtake those held back."""

    def release() -> None:
        for step, within in barriers:
            if held[step].waiting and not any(held[name].is_releasing for name in within):
                held[step].release_all()

    return release

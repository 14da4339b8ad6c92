"""`DelayedResults`: records that an operator holds back until their results are there, as of async calls or of a batch.

Each is forwarded as if it had just been read: with its own headers, its place in the input and its stream time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar

from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.topology.barriers import Barrier

Order: TypeAlias = bool | Literal["by_key"]
"""True: results go on in the order of their records; "by_key": in that of the records of one key; False: in any."""

W = TypeVar("W")


class DelayedResults(ABC, Generic[W]):
    """What one operator of one task holds back; all of it is released before a commit, and before time moves on.

    Parameters
    ----------
    current : CurrentRecord
        Of the task.

    Attributes
    ----------
    waiting : deque
        What is held back, oldest first.
    is_releasing : bool
        Whether results are forwarded at this moment.
    """

    def __init__(self, current: CurrentRecord) -> None:
        self.waiting: deque[W] = deque()
        self.is_releasing = False
        self.hold = current.hold
        self.forward_held = current.forward_held

    def release_all(self) -> None:
        """Forward all results that still wait."""
        if self.waiting and not self.is_releasing:
            self.release_until(0)

    def release_until(self, max_pending: int) -> None:
        """Forward results until only so many records wait."""
        self.is_releasing = True
        try:
            while len(self.waiting) > max_pending:
                self.release_next()
        finally:
            self.is_releasing = False

    @abstractmethod
    def release_next(self) -> None:
        """Forward at least one record that waits."""


def release_before(barriers: Sequence[Barrier], buffers: Mapping[str, DelayedResults[object]]) -> Callable[[], None]:
    """What is called before a node takes a record that must not overtake those held back."""

    def release() -> None:
        for step, within in barriers:
            if buffers[step].waiting and not any(buffers[name].is_releasing for name in within):
                buffers[step].release_all()

    return release

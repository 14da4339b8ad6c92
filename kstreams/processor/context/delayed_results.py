"""`DelayedResults`: records that an operator holds back until their results exist, as for async calls and batches.

Each record is forwarded as if it had just been read: with its headers, its place in the input and its stream time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar

from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.topology.barriers import Barrier

Order: TypeAlias = bool | Literal["by_key"]
"""The order of results: True is the order of the records, "by_key" the order within each key, False any order."""

W = TypeVar("W")


class DelayedResults(ABC, Generic[W]):
    """The records that one operator of one task holds back. All are released before a commit, and before time advances.

    Parameters
    ----------
    current : CurrentRecord
        The current record of the task.

    Attributes
    ----------
    waiting : deque
        The held records, oldest first.
    is_releasing : bool
        True while results are forwarded.
    """

    def __init__(self, current: CurrentRecord) -> None:
        self.waiting: deque[W] = deque()
        self.is_releasing = False
        self.hold = current.hold
        self.forward_held = current.forward_held

    def release_all(self) -> None:
        """Forward all pending results."""
        if self.waiting and not self.is_releasing:
            self.release_until(0)

    def release_until(self, max_pending: int) -> None:
        """Forward results until at most `max_pending` records wait."""
        self.is_releasing = True
        try:
            while len(self.waiting) > max_pending:
                self.release_next()
        finally:
            self.is_releasing = False

    @abstractmethod
    def release_next(self) -> None:
        """Forward at least one waiting record."""


def release_before(barriers: Sequence[Barrier], buffers: Mapping[str, DelayedResults[object]]) -> Callable[[], None]:
    """Return the function to call before a node takes a record that must not overtake held records."""

    def release() -> None:
        for step, within in barriers:
            if buffers[step].waiting and not any(buffers[name].is_releasing for name in within):
                buffers[step].release_all()

    return release

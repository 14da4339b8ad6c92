"""`Interrupt`: ends the loop over the records of a run between two of them, from another thread; it costs no record."""

from __future__ import annotations

from typing import Any


class Interrupt:
    """Of one task. The loop takes records from lists that are its own: emptied, they have no next one.

    Examples
    --------
    >>> interrupt, keys = Interrupt(), ["a", "b", "c"]
    >>> interrupt.guard(keys)
    >>> for key in keys:
    ...     print(key)
    ...     interrupt.set()
    a
    """

    __slots__ = ("_guarded", "is_set")

    def __init__(self) -> None:
        self._guarded: tuple[list[Any], ...] = ()
        self.is_set = False

    def guard(self, *records: list[object]) -> None:
        """From now on these are the lists that a loop takes records from; each loop ends as soon as it is asked to."""
        self._guarded = records
        if self.is_set:  # looked at last, so that a call from another thread at this moment is not missed
            self.set()

    def set(self) -> None:
        """Let no further record be taken, now or later."""
        self.is_set = True
        for records in self._guarded:
            records.clear()

"""`ForwardedCounts`: the number of records that each operator of a task has forwarded to each of its children."""

from __future__ import annotations

from collections.abc import Callable

from kstreams.processor.context.chain import Statement
from kstreams.processor.topology.operator import Forward

NO_CHILD = ""
"""The name of the child of an operator that has no children."""


class ForwardedCounts:
    """Counters by the names of two operators: the one that forwards, and the one that receives.

    Examples
    --------
    >>> counts = ForwardedCounts()
    >>> forward = counts.counting("FILTER", "SHOW", print)
    >>> forward("a", 1, 0)
    a 1 0
    >>> counts.totals()
    {('FILTER', 'SHOW'): 1}
    """

    __slots__ = ("_cells",)

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], list[int]] = {}

    def counting(self, parent: str, child: str, forward: Forward) -> Forward:
        """Return the closure of the child with each call counted."""
        cell = self._cell(parent, child)

        def process(key: object, value: object, timestamp: int) -> None:
            cell[0] += 1
            forward(key, value, timestamp)

        return process

    def statement(self, parent: str, child: str) -> Statement:
        """Return the statement that counts a record within a chain."""
        return Statement("{forwarded}[0] += 1", {"forwarded": self._cell(parent, child)})

    def adding(self, parent: str, child: str) -> Callable[[int], None]:
        """Return a function that counts several records at once."""
        cell = self._cell(parent, child)

        def add(records: int) -> None:
            cell[0] += records

        return add

    def totals(self) -> dict[tuple[str, str], int]:
        """Return the counts; callable from any thread."""
        return {ends: cell[0] for ends, cell in list(self._cells.items())}

    def _cell(self, parent: str, child: str) -> list[int]:
        return self._cells.setdefault((parent, child), [0])

"""`SortedRows`: rows in ascending order, added mostly at the end, looked at mostly at the start, removed anywhere."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]


class SortedRows:
    """Rows that stay in order; one that is gone is only skipped, and cleared away when many are.

    Parameters
    ----------
    is_there : callable
        Whether a row is still there: who owns the rows knows.

    Examples
    --------
    >>> there = {(1,), (3,)}
    >>> rows = SortedRows(there.__contains__)
    >>> for row in ((3,), (1,), (2,)):
    ...     rows.add(row)
    >>> rows.first(), rows.after((1,)), rows.last()
    ((1,), (3,), (3,))
    """

    __slots__ = ("_is_there", "_rows", "_skipped", "_start")

    def __init__(self, is_there: Callable[[Row], bool]) -> None:
        self._is_there = is_there
        self._rows: list[Row] = []
        self._start = self._skipped = 0

    def add(self, row: Row) -> None:
        """Put a row in its place."""
        if self._skipped > 64 and self._skipped * 2 > len(self._rows):
            self.clear_away()
        insort(self._rows, row, lo=self._start)

    def clear_away(self) -> None:
        """Forget the rows that are gone."""
        self._rows = list(filter(self._is_there, self._rows[self._start :]))
        self._start = self._skipped = 0

    def first(self) -> Row | None:
        """The lowest row."""
        rows = self._rows
        while self._start < len(rows) and not self._is_there(rows[self._start]):
            self._start += 1
            self._skipped += 1
        return rows[self._start] if self._start < len(rows) else None

    def after(self, row: Row) -> Row | None:
        """The lowest row above a given one, or above all that begin like it."""
        place = bisect_right(self._rows, row, lo=self._start, key=lambda other: other[: len(row)])
        rows = (self._rows[later] for later in range(place, len(self._rows)))
        return next(filter(self._is_there, rows), None)

    def last(self) -> Row | None:
        """The highest row."""
        while len(self._rows) > self._start and not self._is_there(self._rows[-1]):
            self._rows.pop()
        return self._rows[-1] if len(self._rows) > self._start else None

"""`RunLength`: how many records a task processes in one go."""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_RUN = 100  # few, until it is known how slow the operators are: in columns a run cannot be interrupted
_BRIEF_MS = 10  # what a run takes while queries keep coming
# a run that takes longer is halved the next time, a shorter one doubled
_LONG_MS = 250
_SHORT_MS = 60


@dataclass
class RunLength:
    """Adapts the number of records to how long they take: commits, queries and a stop need not wait for long.

    Examples
    --------
    >>> length = RunLength(most=50_000, most_bytes=1_000_000)
    >>> length.learn(40, 3, 0)
    >>> length.learn(60, 7, 0)
    >>> length.records
    200
    >>> length.brief
    100
    """

    most: int
    most_bytes: int
    records: int = _FIRST_RUN
    _seen: int = 0
    _took_ms: int = 0
    _grown: int = 0
    _per_ms: float = 0.0

    @property
    def brief(self) -> int:
        """How many records it processes while others wait for an answer between two runs."""
        return min(self.records, max(_FIRST_RUN, int(self._per_ms * _BRIEF_MS)))

    def learn(self, records: int, took_ms: int, grown: int) -> None:
        """Adapt to a run: its records, the milliseconds it took, and how many bytes more wait for a commit after it.

        Short runs are taken together.
        """
        self._per_ms = records / took_ms if took_ms else self._per_ms
        self._seen = self._seen + records
        self._took_ms = self._took_ms + took_ms
        self._grown = self._grown + grown
        if self._took_ms > _LONG_MS or self._grown > self.most_bytes:
            self.records = max(1, min(self.records, self._seen) // 2)
        elif self._seen < self.records:
            return
        elif self._took_ms < _SHORT_MS and self._grown * 2 < self.most_bytes:
            self.records = min(self.most, self.records * 2)
        self._seen = self._took_ms = self._grown = 0

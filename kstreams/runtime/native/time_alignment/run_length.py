"""`RunLength`: how many records a task processes without a pause."""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_RUN = 100  # few records until the speed of the operators is known: a run in columns cannot be interrupted
_BRIEF_MS = 10  # the time of a run while queries keep coming
# a run that takes longer is halved, and a shorter one doubled
_LONG_MS = 250
_SHORT_MS = 60


@dataclass
class RunLength:
    """Adapts the number of records to the time that they take, so that commits, queries and a stop wait for short.

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
    _records: int = 0
    _took_ms: int = 0
    _grown: int = 0
    _per_ms: float = 0.0

    @property
    def brief(self) -> int:
        """The number of records of a run while queries wait for the pause after it."""
        return min(self.records, max(_FIRST_RUN, int(self._per_ms * _BRIEF_MS)))

    def learn(self, records: int, took_ms: int, grown: int) -> None:
        """Adapt to a run of `records` that took `took_ms` and left `grown` more bytes to commit.

        Short runs are added up until they have as many records as a whole run.
        """
        self._per_ms = records / took_ms if took_ms else self._per_ms
        self._records = self._records + records
        self._took_ms = self._took_ms + took_ms
        self._grown = self._grown + grown
        if self._took_ms > _LONG_MS or self._grown > self.most_bytes:
            self.records = max(1, min(self.records, self._records) // 2)
        elif self._records < self.records:
            return
        elif self._took_ms < _SHORT_MS and self._grown * 2 < self.most_bytes:
            self.records = min(self.most, self.records * 2)
        self._records = self._took_ms = self._grown = 0

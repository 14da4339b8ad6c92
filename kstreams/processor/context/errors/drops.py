"""`Drops`: records that operators skip, counted exactly; the log gets a first line of each kind, and then sums."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from kstreams.kernel.clock import Clock

logger = logging.getLogger("kstreams.processor")

_MOST_MS = 30_000


class Drops:
    """Counts by operator and reason, of one task or of a whole run.

    Parameters
    ----------
    who : str
        Begins the lines in the log.
    clock : Clock
    every_ms : int
        Least time between two sums (`log.summary.interval.ms`), half a minute at most; 0 or less: only a last one.

    Examples
    --------
    >>> from kstreams.kernel.clock import ManualClock
    >>> drops = Drops("task 0_0", ManualClock(), 1000)
    >>> for offset in (7, 9):
    ...     drops.add("COUNT", "null key", lambda: f"in-0@{offset}")
    >>> drops.counts["COUNT", "null key"], drops.unreported["COUNT", "null key"]
    (2, 1)
    """

    __slots__ = ("_clock", "_every_ms", "_reported_ms", "_who", "counts", "unreported")

    def __init__(self, who: str, clock: Clock, every_ms: int) -> None:
        self._who = who
        self._clock = clock
        self._every_ms = min(every_ms, _MOST_MS)
        self._reported_ms = clock.uptime_ms()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.unreported: Counter[tuple[str, str]] = Counter()

    def add(self, node: str, reason: str, place: Callable[[], str], count: int = 1) -> None:
        """Count records; the first of an operator and reason are logged at once, with their place."""
        kind = node, reason
        if kind not in self.counts:
            subject = "a record" if count == 1 else f"{count} records"
            logger.warning("%s: %s dropped %s at %s: %s", self._who, node, subject, place(), reason)
        else:
            self.unreported[kind] += count
        self.counts[kind] += count

    def report_if_due(self) -> None:
        """Log the sums, if it is time. Cheap when nothing was dropped: to be called often."""
        if self.unreported and 0 < self._every_ms <= self._clock.uptime_ms() - self._reported_ms:
            self.report()

    def report(self) -> None:
        """Log the sums of what was not logged yet."""
        now_ms = self._clock.uptime_ms()
        for (node, reason), count in self.unreported.items():
            logger.warning("%s: %s dropped %d more records: %s", self._who, node, count, reason)
        self.unreported.clear()
        self._reported_ms = now_ms

"""`Samples`: what was recorded of late: rate, average and extremes over a few windows of time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from time import monotonic


class Sample:
    """What was recorded in one window."""

    __slots__ = ("count", "highest", "lowest", "since", "total")

    def __init__(self, since: float) -> None:
        self.since = since
        self.count = 0
        self.total = 0.0
        self.lowest = float("inf")
        self.highest = float("-inf")


class Samples:
    """The last windows of one quantity: recorded by one thread, read by any. Kafka: `SampledStat`.

    Parameters
    ----------
    window_s : float
        Length of a window (`metrics.sample.window.ms`).
    windows : int
        How many are kept (`metrics.num.samples`).
    now : float
        Seconds of the monotonic clock, here and in every call.

    Examples
    --------
    >>> took = Samples(window_s=30, windows=2, now=0)
    >>> took.record(4, now=1), took.record(2, now=2)
    (None, None)
    >>> took.average(now=4), took.highest(now=4), took.rate(now=4)
    (3.0, 4, 0.5)
    >>> took.average(now=100) is None, took.count, took.total
    (True, 2, 6.0)
    """

    __slots__ = ("_kept", "_now", "_until", "_window_s", "count", "total")

    def __init__(self, window_s: float, windows: int, now: float | None = None) -> None:
        started_at = monotonic() if now is None else now
        self._window_s = window_s
        self._until = started_at + window_s
        self._now = Sample(started_at)
        self._kept: deque[Sample] = deque([self._now], maxlen=windows)
        # since the start
        self.count = 0
        self.total = 0.0

    def record(self, value: float, now: float) -> None:
        """Take a value."""
        self.record_many(1, value, value, value, now)

    def record_many(self, count: int, total: float, lowest: float, highest: float, now: float) -> None:
        """Take several values: how many, their sum, and the extremes."""
        if now >= self._until:
            self._now = Sample(now)
            self._until = now + self._window_s
            self._kept.append(self._now)
        sample = self._now
        sample.count += count
        sample.total += total
        sample.lowest = min(lowest, sample.lowest)
        sample.highest = max(highest, sample.highest)
        self.count += count
        self.total += total

    def average(self, now: float) -> float | None:
        """The mean of the values; None where there is none."""
        count = self.seen(now)
        return sum(sample.total for sample in self._alive(now)) / count if count else None

    def highest(self, now: float) -> float | None:
        """The greatest value; None where there is none."""
        return max((sample.highest for sample in self._alive(now)), default=None)

    def lowest(self, now: float) -> float | None:
        """The least value; None where there is none."""
        return min((sample.lowest for sample in self._alive(now)), default=None)

    def seen(self, now: float) -> int:
        """How many values there were."""
        return sum(sample.count for sample in self._alive(now))

    def rate(self, now: float) -> float:
        """How many values there were per second."""
        return self._per_second(now, self.seen(now))

    def sum_rate(self, now: float) -> float:
        """The sum of the values per second: of seconds that something took, which part of the time it took."""
        return self._per_second(now, self.sum(now))

    def sum(self, now: float) -> float:
        """The sum of the values."""
        return sum(sample.total for sample in self._alive(now))

    def _per_second(self, now: float, amount: float) -> float:
        since = min((sample.since for sample in self._alive(now)), default=now)
        return amount / (now - since) if now > since else 0.0

    def _alive(self, now: float) -> Iterator[Sample]:
        oldest = now - self._window_s * (self._kept.maxlen or 1)
        return (sample for sample in list(self._kept) if sample.count and sample.since + self._window_s > oldest)

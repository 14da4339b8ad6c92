"""Statistics of recent values: averages, extremes and rates over the last sample windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

from kstreams.config import Config


class Sample:
    """The statistics of one window."""

    __slots__ = ("count", "highest", "lowest", "since", "total")

    def __init__(self, since: float) -> None:
        self.since = since
        self.count = 0
        self.total = 0.0
        self.lowest = float("inf")
        self.highest = float("-inf")


class Samples:
    """The last windows of one quantity, recorded by one thread and read by any. Kafka: `SampledStat`.

    Parameters
    ----------
    window_s : float
        Length of a window (`metrics.sample.window.ms`).
    windows : int
        Number of windows (`metrics.num.samples`).
    now : float
        Seconds of the monotonic clock, here and in every call.

    Attributes
    ----------
    count, total : int, float
        The number and the sum of the values since the start.

    Examples
    --------
    >>> durations = Samples(window_s=30, windows=2, now=0)
    >>> durations.record(4, now=1), durations.record(2, now=2)
    (None, None)
    >>> durations.average(now=4), durations.highest(now=4), durations.rate(now=4)
    (3.0, 4, 0.5)
    >>> durations.average(now=100) is None, durations.count, durations.total
    (True, 2, 6.0)
    """

    __slots__ = ("_current", "_ends_at", "_samples", "_window_s", "count", "total")

    def __init__(self, window_s: float, windows: int, now: float | None = None) -> None:
        started_at = monotonic() if now is None else now
        self._window_s = window_s
        self._ends_at = started_at + window_s
        self._current = Sample(started_at)
        self._samples: deque[Sample] = deque([self._current], maxlen=windows)
        self.count = 0
        self.total = 0.0

    def record(self, value: float, now: float) -> None:
        """Record a value."""
        self.record_many(1, value, value, value, now)

    def record_many(self, count: int, total: float, lowest: float, highest: float, now: float) -> None:
        """Record several values by their number, their sum and their extremes."""
        if now >= self._ends_at:
            self._current = Sample(now)
            self._ends_at = now + self._window_s
            self._samples.append(self._current)
        sample = self._current
        sample.count += count
        sample.total += total
        sample.lowest = min(lowest, sample.lowest)
        sample.highest = max(highest, sample.highest)
        self.count += count
        self.total += total

    def average(self, now: float) -> float | None:
        """Return the mean of the recent values, or None if there are none."""
        count = self.recent_count(now)
        return self.recent_total(now) / count if count else None

    def highest(self, now: float) -> float | None:
        """Return the greatest of the recent values, or None if there are none."""
        return max((sample.highest for sample in self._recent(now)), default=None)

    def lowest(self, now: float) -> float | None:
        """Return the least of the recent values, or None if there are none."""
        return min((sample.lowest for sample in self._recent(now)), default=None)

    def recent_count(self, now: float) -> int:
        """Return the number of recent values."""
        return sum(sample.count for sample in self._recent(now))

    def recent_total(self, now: float) -> float:
        """Return the sum of the recent values."""
        return sum(sample.total for sample in self._recent(now))

    def rate(self, now: float) -> float:
        """Return the number of recent values per second."""
        return self._per_second(now, self.recent_count(now))

    def sum_rate(self, now: float) -> float:
        """Return the sum of the recent values per second. If the values are seconds, it is a share of the time."""
        return self._per_second(now, self.recent_total(now))

    def _per_second(self, now: float, amount: float) -> float:
        since = min((sample.since for sample in self._recent(now)), default=now)
        return amount / (now - since) if now > since else 0.0

    def _recent(self, now: float) -> Iterator[Sample]:
        oldest = now - self._window_s * (self._samples.maxlen or 1)
        return (sample for sample in list(self._samples) if sample.count and sample.since + self._window_s > oldest)


@dataclass(frozen=True, slots=True)
class SampleWindows:
    """The windows over which the metrics of an application are averaged.

    Examples
    --------
    >>> SampleWindows.of(Config.of({"metrics.sample.window.ms": 5_000}))
    SampleWindows(window_s=5.0, windows=2)
    """

    window_s: float
    windows: int

    @classmethod
    def of(cls, config: Config) -> SampleWindows:
        """Return the windows that the configuration sets."""
        return cls(config["metrics.sample.window.ms"] / 1000, config["metrics.num.samples"])

    def samples(self) -> Samples:
        """Return empty samples for a quantity."""
        return Samples(self.window_s, self.windows)


class Activity:
    """An action that a thread repeats: the duration and the number of records of each time.

    Examples
    --------
    >>> polls = Activity(SampleWindows(30, 2))
    >>> polls.record(started_at=monotonic(), records=500)
    >>> polls.seconds.count, polls.records.total
    (1, 500.0)
    """

    __slots__ = ("records", "seconds")

    def __init__(self, windows: SampleWindows) -> None:
        self.seconds = windows.samples()
        self.records = windows.samples()

    def record(self, started_at: float, records: int = 1) -> None:
        """Record an action that ends now and started at a second of the monotonic clock."""
        now = monotonic()
        self.seconds.record(now - started_at, now)
        self.records.record(records, now)


class Growth:
    """The rate of a counter that is kept elsewhere and read from time to time.

    Parameters
    ----------
    windows : SampleWindows

    Examples
    --------
    >>> growth = Growth(SampleWindows(30, 2))
    >>> growth.update(5), growth.update(7)
    (None, None)
    >>> growth.total, growth.rate(monotonic()) > 0
    (7, True)
    """

    __slots__ = ("_samples", "total")

    def __init__(self, windows: SampleWindows) -> None:
        self._samples = windows.samples()
        self.total = 0

    def update(self, total: int) -> None:
        """Record the present value of the counter."""
        if total > self.total:
            self._samples.record(total - self.total, monotonic())
            self.total = total

    def rate(self, now: float) -> float:
        """Return the growth per second."""
        return self._samples.sum_rate(now)

"""`ThreadSensors`: what a stream thread measures of itself: where its time goes."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from kstreams.config import Config
from kstreams.runtime.native.metrics.samples import Samples


@dataclass(frozen=True, slots=True)
class SampleWindows:
    """Over which time is averaged.

    Examples
    --------
    >>> SampleWindows.of(Config.of({"metrics.sample.window.ms": 5_000}))
    SampleWindows(window_s=5.0, windows=2)
    """

    window_s: float
    windows: int

    @classmethod
    def of(cls, config: Config) -> SampleWindows:
        """As the configuration says."""
        return cls(config["metrics.sample.window.ms"] / 1000, config["metrics.num.samples"])

    def samples(self) -> Samples:
        """For a further quantity."""
        return Samples(self.window_s, self.windows)


class Activity:
    """One of the things that a thread does: how long each turn took, and of how many records it was.

    Examples
    --------
    >>> polls = Activity(SampleWindows(30, 2))
    >>> polls.took(since=monotonic(), records=500)
    >>> polls.seconds.count, polls.records.total
    (1, 500.0)
    """

    __slots__ = ("records", "seconds")

    def __init__(self, windows: SampleWindows) -> None:
        self.seconds, self.records = windows.samples(), windows.samples()

    def took(self, since: float, records: int = 1) -> None:
        """A turn has ended that began at this second of the monotonic clock."""
        now = monotonic()
        self.seconds.record(now - since, now)
        self.records.record(records, now)


class ThreadSensors:
    """The measurements of one stream thread.

    Parameters
    ----------
    windows : SampleWindows
    started_ms : int
        When the thread was made.

    Examples
    --------
    >>> sensors = ThreadSensors(SampleWindows(30, 2), started_ms=0)
    >>> for operator in ("COUNT", "COUNT", None, "FILTER"):
    ...     sensors.seen_in(operator)
    >>> sensors.shares(monotonic())
    {'COUNT': 0.5, 'FILTER': 0.25}
    """

    def __init__(self, windows: SampleWindows, started_ms: int) -> None:
        self._windows, self.started_ms = windows, started_ms
        self.poll, self.process = Activity(windows), Activity(windows)
        self.punctuate, self.commit = Activity(windows), Activity(windows)
        self.tasks_created = self.tasks_closed = 0
        self._looks, self._operators = windows.samples(), dict[str, Samples]()

    def seen_in(self, operator: str | None) -> None:
        """A look at the thread has found it in an operator, or in none."""
        now = monotonic()
        self._looks.record(1, now)
        if operator is not None:
            self._operators.setdefault(operator, self._windows.samples()).record(1, now)

    def shares(self, now: float) -> dict[str, float]:
        """Which part of the thread's time each operator takes, by the looks of late."""
        looks = self._looks.seen(now)
        return {name: found.seen(now) / looks for name, found in list(self._operators.items()) if looks}

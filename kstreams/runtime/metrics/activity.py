"""`Activity`: how long the turns of something took, of late; `SampleWindows`: over which time is averaged."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from kstreams.config import Config
from kstreams.runtime.metrics.samples import Samples


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
        self.seconds = windows.samples()
        self.records = windows.samples()

    def took(self, since: float, records: int = 1) -> None:
        """A turn has ended that began at this second of the monotonic clock."""
        now = monotonic()
        self.seconds.record(now - since, now)
        self.records.record(records, now)

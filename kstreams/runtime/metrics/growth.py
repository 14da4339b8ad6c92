"""`Growth`: how fast a counter grows of late."""

from __future__ import annotations

from time import monotonic

from kstreams.runtime.metrics.activity import SampleWindows


class Growth:
    """A counter that somebody else keeps, looked at from time to time.

    Parameters
    ----------
    windows : SampleWindows

    Examples
    --------
    >>> growth = Growth(SampleWindows(30, 2))
    >>> growth.reached(5), growth.reached(7)
    (None, None)
    >>> growth.total, growth.rate(monotonic()) > 0
    (7, True)
    """

    __slots__ = ("_samples", "total")

    def __init__(self, windows: SampleWindows) -> None:
        self._samples = windows.samples()
        self.total = 0

    def reached(self, total: int) -> None:
        """So high is it now."""
        if total > self.total:
            self._samples.record(total - self.total, monotonic())
            self.total = total

    def rate(self, now: float) -> float:
        """By how much it grows per second."""
        return self._samples.sum_rate(now)

"""`ThreadSensors`: what a stream thread measures of itself: where its time goes."""

from __future__ import annotations

from time import monotonic

from kstreams.runtime.metrics.activity import Activity, SampleWindows
from kstreams.runtime.metrics.samples import Samples


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
        self._windows = windows
        self.started_ms = started_ms
        self.poll = Activity(windows)
        self.process = Activity(windows)
        self.punctuate = Activity(windows)
        self.commit = Activity(windows)
        self.tasks_created = windows.samples()
        self.tasks_closed = windows.samples()
        self._looks = windows.samples()
        self._operators = dict[str, Samples]()

    def seen_in(self, operator: str | None) -> None:
        """A look at the thread has found it in an operator, or in none."""
        now = monotonic()
        self._looks.record(1, now)
        if operator is not None:
            self._operators.setdefault(operator, self._windows.samples()).record(1, now)

    def shares(self, now: float) -> dict[str, float]:
        """Which part of the thread's time each operator takes, by the looks of late."""
        looks = self._looks.seen(now)
        return {name: samples.seen(now) / looks for name, samples in list(self._operators.items()) if looks}

"""Wall-clock time, injected wherever it is needed: nothing else in kstreams asks the system for it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells wall-clock time and waits."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that stands still until it is moved: for tests and deterministic runs.

    Examples
    --------
    >>> clock = ManualClock(1_000)
    >>> clock.advance(500)
    >>> clock.now_ms()
    1500
    """

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        self.advance(int(seconds * 1000))

    def advance(self, milliseconds: int) -> None:
        """Move time forward by `milliseconds`."""
        self._now_ms += milliseconds

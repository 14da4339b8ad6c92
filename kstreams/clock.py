"""Wall-clock time, injected wherever it is needed: nothing else in kstreams asks the system for it."""

from __future__ import annotations

import time
from threading import Event
from typing import Protocol


class Clock(Protocol):
    """Tells wall-clock time and waits."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        """Wait for `seconds`, or until the event is set."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        if until is None:
            time.sleep(seconds)
        else:
            until.wait(seconds)


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

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        if until is None or not until.is_set():
            self.advance(int(seconds * 1000))

    def advance(self, milliseconds: int) -> None:
        """Move time forward by `milliseconds`."""
        self._now_ms += milliseconds

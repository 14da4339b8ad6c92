"""`Clock`: the time of day and the uptime. No other module of kstreams reads the time of day from the system.

The time of day (`wall_ms`) is written into records and shown to people. It may jump, and processes may differ in it.
The uptime (`uptime_ms`) only grows, and all processes of a machine share it until the next boot. Durations, deadlines
and timeouts are counted in uptime.
"""

from __future__ import annotations

import time
from threading import Event
from typing import Protocol


class Clock(Protocol):
    """The time of day, the uptime, and waiting."""

    def wall_ms(self) -> int:
        """Return the time of day in milliseconds since the Unix epoch, to write it into records or to show it.

        It may jump, and differs between processes, so deadlines are counted in `uptime_ms`.
        """
        ...

    def uptime_ms(self) -> int:
        """Return the milliseconds since the machine booted. They only grow.

        All processes of a machine share this time, so they may read deadlines that another process has written.
        """
        ...

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        """Wait for `seconds`, or until the event is set."""
        ...


class SystemClock:
    """The clock of the machine."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def uptime_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        if until is None:
            time.sleep(seconds)
        else:
            until.wait(seconds)


class ManualClock:
    """A clock that moves on request only, for tests and deterministic runs.

    Parameters
    ----------
    now_ms : int
        The time of day and the uptime at first.

    Examples
    --------
    >>> clock = ManualClock(1_000)
    >>> clock.advance(500)
    >>> clock.wall_ms(), clock.uptime_ms()
    (1500, 1500)
    >>> clock.jump(-700)
    >>> clock.wall_ms(), clock.uptime_ms()
    (800, 1500)
    """

    def __init__(self, now_ms: int = 0) -> None:
        self._wall_ms = now_ms
        self._uptime_ms = now_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def uptime_ms(self) -> int:
        return self._uptime_ms

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        if until is None or not until.is_set():
            self.advance(int(seconds * 1000))

    def advance(self, milliseconds: int) -> None:
        """Add `milliseconds` to the time of day and to the uptime."""
        self._wall_ms += milliseconds
        self._uptime_ms += milliseconds

    def jump(self, milliseconds: int) -> None:
        """Add `milliseconds`, which may be negative, to the time of day alone."""
        self._wall_ms += milliseconds

"""Time, injected wherever it is needed: nothing else in kstreams asks the system for the time of day.

There are two kinds of time, and one is no substitute for the other. The time of day (`wall_ms`) is what records carry
and people read; it may jump, and differ between processes. What has passed (`uptime_ms`) only grows, alike in all
processes of a machine, until it boots again; all durations, deadlines and time-outs are counted in it.
"""

from __future__ import annotations

import time
from threading import Event
from typing import Protocol


class Clock(Protocol):
    """Tells both kinds of time, and waits."""

    def wall_ms(self) -> int:
        """The time of day, in milliseconds since the Unix epoch: for what is written into records, or shown.

        It may jump back or forward, and that of another process may be another one: no deadline is counted in it.
        """
        ...

    def uptime_ms(self) -> int:
        """Milliseconds since a moment before this process: they only grow, whatever becomes of the time of day.

        All processes of a machine count from the same moment, until it boots again. So a deadline that one of them has
        written down is that of the others too.
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
    """A clock that stands still until it is moved: for tests and deterministic runs.

    Parameters
    ----------
    now_ms : int
        Both kinds of time at the beginning.

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
        self._wall_ms = self._uptime_ms = now_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def uptime_ms(self) -> int:
        return self._uptime_ms

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        if until is None or not until.is_set():
            self.advance(int(seconds * 1000))

    def advance(self, milliseconds: int) -> None:
        """Let `milliseconds` pass."""
        self._wall_ms += milliseconds
        self._uptime_ms += milliseconds

    def jump(self, milliseconds: int) -> None:
        """Set the time of day forward, or back by a negative number: no time passes."""
        self._wall_ms += milliseconds

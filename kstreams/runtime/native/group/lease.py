"""`Lease`: until when a process is in its group for certain, where the home does not check it at every append."""

from __future__ import annotations

import time

_MARGIN = 0.9  # of the session: what is sent now arrives a little later


class Lease:
    """The time for which the group waits for a sign of life, from the last one that it has confirmed.

    It is counted by a clock that goes on while the machine sleeps: a broker elsewhere does not sleep.

    Parameters
    ----------
    session_s : float
        `session.timeout.ms`, in seconds.

    Examples
    --------
    >>> lease = Lease(session_s=45.0)
    >>> lease.is_valid()
    False
    >>> lease.renew(asked_s=lease.now_s())
    >>> lease.is_valid()
    True
    """

    def __init__(self, session_s: float) -> None:
        self._session_s = session_s
        self._until_s = float("-inf")

    @staticmethod
    def now_s() -> float:
        """The time by which leases are counted."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    def is_valid(self) -> bool:
        """Whether the group cannot have given the tasks of this process to others."""
        return self.now_s() < self._until_s

    def renew(self, asked_s: float) -> None:
        """The group has confirmed the membership when it was asked at this time, or later."""
        self._until_s = max(self._until_s, asked_s + _MARGIN * self._session_s)

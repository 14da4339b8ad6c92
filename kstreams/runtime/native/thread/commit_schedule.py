"""`CommitSchedule`: when a thread commits."""

from __future__ import annotations

from collections.abc import Sequence

from kstreams.kernel.clock import Clock
from kstreams.runtime.native.settings import ThreadSettings
from kstreams.runtime.native.thread.active_task import ActiveTask

_LONGEST_REST_MS = 10_000
_REST_PER_COMMIT = 20  # a bounded run spends at most a twentieth of its time on commits: single results are not urgent


class CommitSchedule:
    """At intervals; earlier where uncommitted changes take much memory, or where a processor asks for it.

    The first interval is short, so that the first results come soon. Each is twice as long as the one before, up to the
    one that is configured. After a rest without input it is short again.

    Parameters
    ----------
    settings : ThreadSettings
    clock : Clock
    is_bounded : bool
        Whether the run ends with its input: then single results are not urgent.
    """

    def __init__(self, settings: ThreadSettings, clock: Clock, *, is_bounded: bool) -> None:
        self._settings = settings
        self._clock = clock
        self._is_bounded = is_bounded
        self._longest_ms = settings.commit_interval_ms
        self._first_ms = self._longest_ms if is_bounded else min(settings.first_commit_interval_ms, self._longest_ms)
        self._interval_ms = self._first_ms
        self._took_ms = 0
        self._committed_ms = clock.uptime_ms()
        self._since_ms: int | None = None  # when there was something to commit

    def restart(self) -> None:
        """Count the interval from now."""
        self._committed_ms = self._clock.uptime_ms()

    def committed(self, started_ms: int) -> None:
        """A commit that began at `started_ms` is done."""
        self._committed_ms = self._clock.uptime_ms()
        self._since_ms = None
        self._took_ms = self._committed_ms - started_ms
        self._interval_ms = min(self._longest_ms, max(1, self._interval_ms) * 2)

    def is_memory_full(self, tasks: Sequence[ActiveTask]) -> bool:
        """Whether the uncommitted changes of the tasks exceed the thread's part of the memory."""
        return sum(task.bytes_pending for task in tasks) > self._settings.uncommitted_bytes

    def is_due(self, tasks: Sequence[ActiveTask], *, is_slice_open: bool) -> bool:
        """Whether to commit now.

        Parameters
        ----------
        tasks : sequence of ActiveTask
        is_slice_open : bool
            Whether a time slice is incomplete: what was written of it cannot be put in order before.
        """
        if is_slice_open:
            return False
        if any(task.task.commit_requested for task in tasks) or self.is_memory_full(tasks):
            return True
        return any(task.uncommitted for task in tasks) and self._is_interval_over()

    def _is_interval_over(self) -> bool:
        now_ms = self._clock.uptime_ms()
        if self._is_bounded:
            rest_ms = min(self._took_ms * _REST_PER_COMMIT, _LONGEST_REST_MS)
            return now_ms - self._committed_ms >= max(self._longest_ms, rest_ms)
        if self._since_ms is None:
            self._since_ms = now_ms
            if now_ms - self._committed_ms >= self._longest_ms:
                self._interval_ms = self._first_ms
        return now_ms - max(self._since_ms, self._committed_ms) >= self._interval_ms

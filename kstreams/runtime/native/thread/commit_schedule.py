"""`CommitSchedule`: when a thread commits."""

from __future__ import annotations

from collections.abc import Sequence

from kstreams.clock import Clock
from kstreams.runtime.native.settings import ThreadSettings
from kstreams.runtime.native.thread.active_task import ActiveTask

_LONGEST_REST_MS = 10_000
_REST_PER_COMMIT = 20  # a bounded run spends at most a twentieth of its time on commits: single results are not urgent


class CommitSchedule:
    """At intervals; earlier where uncommitted changes take much memory, or where a processor asks for it.

    Parameters
    ----------
    settings : ThreadSettings
    clock : Clock
    is_bounded : bool
        Whether the run ends with its input.
    """

    def __init__(self, settings: ThreadSettings, clock: Clock, *, is_bounded: bool) -> None:
        self._settings, self._clock, self._is_bounded = settings, clock, is_bounded
        self._committed_ms, self._took_ms = clock.now_ms(), 0

    def restart(self) -> None:
        """Count the interval from now."""
        self._committed_ms = self._clock.now_ms()

    def committed(self, started_ms: int) -> None:
        """A commit that began at `started_ms` is done."""
        self._committed_ms = self._clock.now_ms()
        self._took_ms = self._committed_ms - started_ms

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
        return self._is_interval_over() and any(task.uncommitted for task in tasks)

    def _is_interval_over(self) -> bool:
        rest_ms = min(self._took_ms * _REST_PER_COMMIT, _LONGEST_REST_MS) if self._is_bounded else 0
        return self._clock.now_ms() - self._committed_ms >= max(self._settings.commit_interval_ms, rest_ms)

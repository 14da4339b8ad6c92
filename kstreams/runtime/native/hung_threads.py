"""`HungThreads`: names the operators from which stream threads do not come back."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kstreams.kernel.clock import Clock
from kstreams.runtime.native.lifecycle import ThreadState
from kstreams.runtime.native.thread.stream_thread import StreamThread

logger = logging.getLogger(__name__)

_MOST_MS = 30_000


class HungThreads:
    """Looks how long the threads of a process are in their present round.

    Parameters
    ----------
    clock : Clock
    timeout_ms : int
        `task.timeout.ms`; a thread is reported at the latest after 30 seconds.
    """

    def __init__(self, clock: Clock, timeout_ms: int) -> None:
        self._clock = clock
        self._after_ms = min(timeout_ms, _MOST_MS)
        self._reported: dict[str, int] = {}

    def look(self, threads: Sequence[StreamThread]) -> None:
        """Log, once for each round, that a thread does not come back."""
        for thread in threads:
            took_ms = self._clock.uptime_ms() - thread.round_ms
            works = thread.state in (ThreadState.RUNNING, ThreadState.PENDING_SHUTDOWN)
            if works and took_ms >= self._after_ms and self._reported.get(thread.name) != thread.round_ms:
                self._reported[thread.name] = thread.round_ms
                logger.warning(
                    "%s has not come back from %s for %d s: its other tasks, its commits and its queries wait",
                    *(thread.name, place_of(thread) or "its work", took_ms // 1000),
                )


def places(threads: Sequence[StreamThread]) -> str:
    """Where threads that do not end are, as the end of a sentence."""
    descriptions = [f"{thread.name} is in {place}" for thread in threads if (place := place_of(thread)) is not None]
    return "; ".join(descriptions) or "no thread is in an operator"


def place_of(thread: StreamThread) -> str | None:
    """The operator that a thread is in, with the user's line, and the task."""
    place = thread.place()
    if place is None:
        return None
    task, operator = place
    return f"{task.task.described(operator)} of task {task.id}"

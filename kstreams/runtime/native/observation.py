"""`observe`: logs threads that hang, a lag that grows, and tasks that are assigned again and again."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise

from kstreams.kernel.clock import Clock
from kstreams.metrics.debug_sensors import records_debug
from kstreams.runtime.native.lifecycle import ThreadState
from kstreams.runtime.native.rebalance_loop import RebalanceLoop
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.thread.stream_thread import StreamThread

logger = logging.getLogger(__name__)


_MOST_MS = 30_000


class HungThreads:
    """Reports threads that do not return from a round.

    Parameters
    ----------
    clock : Clock
    timeout_ms : int
        `task.timeout.ms`. A thread is reported after 30 seconds at the latest.
    """

    def __init__(self, clock: Clock, timeout_ms: int) -> None:
        self._clock = clock
        self._after_ms = min(timeout_ms, _MOST_MS)
        self._reported: dict[str, int] = {}

    def look(self, threads: Sequence[StreamThread]) -> None:
        """Log each thread that does not return, once per round."""
        for thread in threads:
            took_ms = self._clock.uptime_ms() - thread.round_ms
            works = thread.state in (ThreadState.RUNNING, ThreadState.PENDING_SHUTDOWN)
            if works and took_ms >= self._after_ms and self._reported.get(thread.name) != thread.round_ms:
                self._reported[thread.name] = thread.round_ms
                logger.warning(
                    "%s has not come back from %s for %d s: its other tasks, its commits and its queries wait",
                    thread.name,
                    place_of(thread) or "its work",
                    took_ms // 1000,
                )


def places(threads: Sequence[StreamThread]) -> str:
    """Return the operators that threads are in, as the end of a sentence."""
    descriptions = [f"{thread.name} is in {place}" for thread in threads if (place := place_of(thread)) is not None]
    return "; ".join(descriptions) or "no thread is in an operator"


def place_of(thread: StreamThread) -> str | None:
    """Return the operator that a thread is in, with the user's line and the task, or None."""
    place = thread.place()
    if place is None:
        return None
    task, operator = place
    return f"{task.task.described(operator)} of task {task.id}"


_LOOKS = 4
_LEAST = 10_000


class GrowingLag:
    """Detects a lag that grows at each observation.

    Examples
    --------
    >>> lag = GrowingLag()
    >>> [lag.is_growing(records) for records in (20_000, 30_000, 50_000, 80_000, 60_000)]
    [False, False, False, True, False]
    """

    def __init__(self) -> None:
        self._seen: deque[int] = deque(maxlen=_LOOKS)

    def is_growing(self, lag: int) -> bool:
        """Note a lag. Return True if it has grown at each of the last observations and is large."""
        self._seen.append(lag)
        lags = list(self._seen)
        grows = all(before < after for before, after in pairwise(lags))
        return len(lags) == _LOOKS and grows and lag >= _LEAST

    def look(self, lag: int) -> None:
        """Log a growing lag."""
        if self.is_growing(lag):
            logger.warning(
                "the lag has grown from %d to %d records: the input is faster than the application; more processes "
                "(`--workers`) or threads (`num.stream.threads`) share the tasks",
                self._seen[0],
                lag,
            )
            self._seen.clear()


_LOOK_S = 0.5
_LOOKS_PER_LAG = 15
_OPERATORS_S = 0.05


def observe(
    context: RuntimeContext,
    threads: Callable[[], Sequence[StreamThread]],
    lag: Callable[[], int],
    stopping: threading.Event,
) -> None:
    """Look at intervals until `stopping` is set. The lag of a bounded run is not observed.

    Parameters
    ----------
    context : RuntimeContext
    threads : callable
        Returns the present threads.
    lag : callable
        Returns the present lag in records.
    stopping : Event
    """
    hung = HungThreads(context.environment.clock, context.environment.settings.task_timeout_ms)
    growing = GrowingLag()
    loop = RebalanceLoop(context.environment.clock)
    if records_debug(context.environment.config):
        threading.Thread(target=_look_at_operators, args=(threads, stopping), daemon=True).start()
    for look in itertools.count(1):
        if stopping.wait(_LOOK_S):
            return
        hung.look(threads())
        loop.look(context.environment.assignments.counts())
        if context.topology.bounds is None and look % _LOOKS_PER_LAG == 0:
            growing.look(lag())


def _look_at_operators(threads: Callable[[], Sequence[StreamThread]], stopping: threading.Event) -> None:
    """Sample the operators that threads are in, for the metric `active-ratio`."""
    while not stopping.wait(_OPERATORS_S):
        for thread in threads():
            place = thread.place()
            thread.sensors.record_operator(None if place is None else place[1])

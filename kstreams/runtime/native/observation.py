"""`observe`: logs threads that hang, a lag that grows, and tasks that rebalances assign repeatedly."""

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

_MAX_ROUND_MS = 30_000


class HungThreads:
    """A detector of threads that do not return from a round.

    Parameters
    ----------
    clock : Clock
    timeout_ms : int
        `task.timeout.ms`. A thread is logged after 30 seconds at the latest.
    """

    def __init__(self, clock: Clock, timeout_ms: int) -> None:
        self._clock = clock
        self._max_round_ms = min(timeout_ms, _MAX_ROUND_MS)
        self._logged_rounds: dict[str, int] = {}

    def check(self, threads: Sequence[StreamThread]) -> None:
        """Log each thread that does not return, once per round."""
        for thread in threads:
            round_ms = self._clock.uptime_ms() - thread.round_ms
            is_working = thread.state in (ThreadState.RUNNING, ThreadState.PENDING_SHUTDOWN)
            is_logged = self._logged_rounds.get(thread.name) == thread.round_ms
            if is_working and not is_logged and round_ms >= self._max_round_ms:
                self._logged_rounds[thread.name] = thread.round_ms
                logger.warning(
                    "%s has not come back from %s for %d s: its other tasks, its commits and its queries wait",
                    thread.name,
                    current_operator(thread) or "its work",
                    round_ms // 1000,
                )


def current_operators(threads: Sequence[StreamThread]) -> str:
    """Return the operators that threads are in, as the end of a sentence."""
    operators = ((thread.name, current_operator(thread)) for thread in threads)
    descriptions = [f"{thread} is in {operator}" for thread, operator in operators if operator is not None]
    return "; ".join(descriptions) or "no thread is in an operator"


def current_operator(thread: StreamThread) -> str | None:
    """Return the operator that a thread is in, with the user's line and the task, or None."""
    place = thread.place()
    if place is None:
        return None
    task, operator = place
    return f"{task.task.described(operator)} of task {task.id}"


_OBSERVATIONS = 4
_MIN_LAG = 10_000


class GrowingLag:
    """A detector of a lag that grows at each observation.

    Examples
    --------
    >>> lag = GrowingLag()
    >>> [lag.is_growing(records) for records in (20_000, 30_000, 50_000, 80_000, 60_000)]
    [False, False, False, True, False]
    """

    def __init__(self) -> None:
        self._lags: deque[int] = deque(maxlen=_OBSERVATIONS)

    def is_growing(self, lag: int) -> bool:
        """Record a lag. Return True if it has grown at each of the last observations and is large."""
        self._lags.append(lag)
        lags = list(self._lags)
        grows = all(before < after for before, after in pairwise(lags))
        return len(lags) == _OBSERVATIONS and grows and lag >= _MIN_LAG

    def check(self, lag: int) -> None:
        """Record a lag, and log it if it grows."""
        if self.is_growing(lag):
            logger.warning(
                "the lag has grown from %d to %d records: the input is faster than the application; more processes "
                "(`--workers`) or threads (`num.stream.threads`) share the tasks",
                self._lags[0],
                lag,
            )
            self._lags.clear()


_CHECK_INTERVAL_S = 0.5
_CHECKS_PER_LAG = 15
_SAMPLE_INTERVAL_S = 0.05


def observe(
    context: RuntimeContext,
    threads: Callable[[], Sequence[StreamThread]],
    lag: Callable[[], int],
    stopping: threading.Event,
) -> None:
    """Check threads, rebalances and the lag periodically until `stopping` is set. The lag of a bounded run is ignored.

    Parameters
    ----------
    context : RuntimeContext
    threads : callable
        Returns the present threads.
    lag : callable
        Returns the present lag in records.
    stopping : Event
    """
    hung_threads = HungThreads(context.environment.clock, context.environment.settings.task_timeout_ms)
    growing_lag = GrowingLag()
    rebalance_loop = RebalanceLoop(context.environment.clock)
    if records_debug(context.environment.config):
        threading.Thread(target=_sample_operators, args=(threads, stopping), daemon=True).start()
    for check in itertools.count(1):
        if stopping.wait(_CHECK_INTERVAL_S):
            return
        hung_threads.check(threads())
        rebalance_loop.check(context.environment.assignments.counts())
        if context.topology.bounds is None and check % _CHECKS_PER_LAG == 0:
            growing_lag.check(lag())


def _sample_operators(threads: Callable[[], Sequence[StreamThread]], stopping: threading.Event) -> None:
    """Sample the operators that threads are in, for the metric `active-ratio`."""
    while not stopping.wait(_SAMPLE_INTERVAL_S):
        for thread in threads():
            place = thread.place()
            thread.sensors.record_operator(None if place is None else place[1])

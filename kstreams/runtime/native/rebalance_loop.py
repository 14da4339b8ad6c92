"""`RebalanceLoop`: logs tasks that rebalances assign to a process repeatedly."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping

from kstreams.kernel.clock import Clock
from kstreams.processor.topology.sub_topologies import TaskId

logger = logging.getLogger(__name__)

_WINDOW_MS = 60_000
_MIN_ASSIGNMENTS = 3


class RebalanceLoop:
    """A detector of repeated assignments of tasks within a minute.

    A task is assigned once if a process starts or ends, and twice if a process is started again. If a task is assigned
    three times within a minute, the group does not become stable.

    Parameters
    ----------
    clock : Clock
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._history: deque[tuple[int, Mapping[TaskId, int]]] = deque()  # counts with the time of their change
        self._quiet_until_ms = 0

    def check(self, counts: Mapping[TaskId, int]) -> None:
        """Log a loop, at most once a minute.

        Parameters
        ----------
        counts : mapping of TaskId to int
            The number of assignments of each task. Each change creates a new mapping.
        """
        now_ms = self._clock.uptime_ms()
        while len(self._history) > 1 and now_ms - self._history[1][0] >= _WINDOW_MS:
            self._history.popleft()
        if not self._history or self._history[-1][1] is not counts:
            self._history.append((now_ms, counts))
        start_ms, start_counts = self._history[0]
        repetitions = {task: count - start_counts.get(task, 1) for task, count in counts.items()}
        task, times = max(repetitions.items(), key=lambda item: item[1], default=(None, 0))
        if times >= _MIN_ASSIGNMENTS and now_ms >= self._quiet_until_ms:
            logger.warning(
                "task %s and %d others were assigned to this process again and again, %d times within %d s: the group "
                "does not become stable, because processes start and end, or are too busy for a heartbeat within "
                "session.timeout.ms: look for log lines about processes that are no longer there",
                task,
                sum(count >= _MIN_ASSIGNMENTS for count in repetitions.values()) - 1,
                times,
                (now_ms - start_ms) // 1000,
            )
            self._quiet_until_ms = now_ms + _WINDOW_MS

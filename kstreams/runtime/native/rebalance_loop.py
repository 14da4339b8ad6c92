"""`RebalanceLoop`: reports tasks that are assigned to a process again and again."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping

from kstreams.kernel.clock import Clock
from kstreams.processor.topology.sub_topologies import TaskId

logger = logging.getLogger(__name__)

_WINDOW_MS = 60_000
_LEAST = 3


class RebalanceLoop:
    """Counts the assignments of each task within a minute.

    A task is assigned once if a process starts or ends, and twice if a process is started again. If it is assigned
    three times within a minute, the group does not become stable.

    Parameters
    ----------
    clock : Clock
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: deque[tuple[int, Mapping[TaskId, int]]] = deque()
        self._quiet_until_ms = 0

    def check(self, counts: Mapping[TaskId, int]) -> None:
        """Log a loop, at intervals.

        Parameters
        ----------
        counts : mapping of TaskId to int
            The number of assignments of each task. Each change creates a new mapping.
        """
        now_ms = self._clock.uptime_ms()
        while len(self._seen) > 1 and now_ms - self._seen[1][0] >= _WINDOW_MS:
            self._seen.popleft()
        if not self._seen or self._seen[-1][1] is not counts:
            self._seen.append((now_ms, counts))
        began_ms, before = self._seen[0]
        again = {task: count - before.get(task, 1) for task, count in counts.items()}
        task, times = max(again.items(), key=lambda item: item[1], default=(None, 0))
        if times >= _LEAST and now_ms >= self._quiet_until_ms:
            logger.warning(
                "task %s and %d others came to this process again and again, %d times within %d s: the group does not "
                "come to rest. Processes that start and end, or that are too busy to be heard of within "
                "session.timeout.ms, make it so: look for the lines on processes that are no longer there",
                task,
                sum(more >= _LEAST for more in again.values()) - 1,
                times,
                (now_ms - began_ms) // 1000,
            )
            self._quiet_until_ms = now_ms + _WINDOW_MS

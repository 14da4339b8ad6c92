"""`StallDetector`: logs when a task makes no progress, and at intervals a summary of its thread."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from kstreams.kernel.clock import Clock
from kstreams.runtime.native.thread.active_task import ActiveTask

logger = logging.getLogger(__name__)


@dataclass
class _Seen:
    """What a task had processed when it last made progress."""

    records: int
    at_ms: int
    reported: bool = False


class StallDetector:
    """Observes the tasks of one thread.

    Parameters
    ----------
    name : str
        Of the thread.
    timeout_ms : int
        After how long without progress a task is reported.
    summary_ms : int
        Interval of the summaries; 0: none.
    clock : Clock
    """

    def __init__(self, name: str, timeout_ms: int, summary_ms: int, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._summary_ms = summary_ms
        self._summarized_ms = clock.uptime_ms()
        self._summarized_records = 0
        self._seen: dict[str, _Seen] = {}
        self.stalls = 0

    def check(self, tasks: Sequence[ActiveTask]) -> None:
        """Compare with what the last check found."""
        now_ms = self._clock.uptime_ms()
        for task in tasks:
            self._check(task, now_ms)
        if 0 < self._summary_ms <= now_ms - self._summarized_ms:
            self._summarize(tasks, now_ms)

    def _check(self, task: ActiveTask, now_ms: int) -> None:
        last_progress = self._seen.setdefault(task.id, _Seen(task.processed, now_ms))
        sources = [source for source in task.plan.inputs if task.group.buffered(source)]
        if task.processed != last_progress.records or not sources:
            self._seen[task.id] = _Seen(task.processed, now_ms)
        elif now_ms - last_progress.at_ms >= self._timeout_ms and not last_progress.reported:
            last_progress.reported = True
            self.stalls += 1
            reason = ", ".join(map(str, task.group.empty_partitions())) or _unseen_reason(task)
            logger.warning(
                "%s: task %s has made no progress for %d ms: it holds records of %s and waits for %s",
                self._name, task.id, now_ms - last_progress.at_ms, ", ".join(map(str, sources)), reason,
            )  # fmt: skip

    def _summarize(self, tasks: Sequence[ActiveTask], now_ms: int) -> None:
        records = sum(task.processed for task in tasks)
        new = records - self._summarized_records
        seconds = (now_ms - self._summarized_ms) / 1000
        logger.info("%s: %d tasks processed %d records in %.0f s", self._name, len(tasks), new, seconds)
        self._summarized_ms = now_ms
        self._summarized_records = records


def _unseen_reason(task: ActiveTask) -> str:
    return "nothing" if task.has_more() else "tasks that read history and have not come as far in time"

"""`Purge`: deletes from repartition topics what has been processed and committed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin
from kstreams.runtime.native.thread.active_task import ActiveTask


class Purge:
    """Purges the repartition topics that one thread's tasks read.

    Parameters
    ----------
    admin : Admin
    topics : collection of str
        Real names of the repartition topics.
    interval_ms : int
        Least time between two purges.
    clock : Clock
    """

    def __init__(self, admin: Admin, topics: Collection[str], interval_ms: int, clock: Clock) -> None:
        self._admin = admin
        self._topics = topics
        self._clock = clock
        self._interval_ms = interval_ms
        self._last_ms = clock.uptime_ms()
        self._purged: dict[TopicPartition, int] = {}

    def after_commit(self, tasks: Iterable[ActiveTask]) -> None:
        """Delete what these tasks have just committed, if it is time."""
        now_ms = self._clock.uptime_ms()
        if not self._topics or now_ms - self._last_ms < self._interval_ms:
            return
        offsets = {s: at for task in tasks for s, at in task.next_offsets.items() if s.topic in self._topics}
        moved = {source: at for source, at in offsets.items() if at > self._purged.get(source, 0)}
        if moved:
            self._admin.delete_records(moved)
        self._purged |= moved
        self._last_ms = now_ms

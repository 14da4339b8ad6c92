"""`PartitionWatch`: looks from time to time whether topics have got more partitions."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.runtime.spark.query import PartitionsAdded


class PartitionWatch:
    """The watch of some topics.

    Parameters
    ----------
    log : Log
    counts : mapping of str to int
        The number of partitions that are read of each topic.
    interval_ms : int
        The time between two looks.
    clock : Clock
    """

    def __init__(self, log: Log, counts: Mapping[str, int], interval_ms: int, clock: Clock) -> None:
        self._log = log
        self._counts = counts
        self._interval_ms = interval_ms
        self._clock = clock
        self._checked_ms = clock.uptime_ms()

    def check_if_due(self) -> None:
        """Look if the interval has passed. Raises PartitionsAdded if a topic has more partitions."""
        now_ms = self._clock.uptime_ms()
        if not self._counts or now_ms - self._checked_ms < self._interval_ms:
            return
        self._checked_ms = now_ms
        with self._log.admin() as admin:
            topics = admin.topics()
        added = [
            f"{topics[topic].partitions - count} to {topic}"
            for topic, count in self._counts.items()
            if topic in topics and topics[topic].partitions > count
        ]
        if added:
            raise PartitionsAdded(f"partitions were added: {', '.join(added)}")

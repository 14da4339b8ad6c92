"""`FeedPurge`: deletes the records of DataFrames and connectors that all queries have read."""

from __future__ import annotations

from collections.abc import Collection

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.runtime.spark.io.committed_steps import CommittedSteps


class FeedPurge:
    """The purge of the topics that DataFrames fill.

    After a crash, a query may read the input of its last step again. So a purge deletes up to the positions of the
    previous purge, and only in partitions where another step was committed since.

    Parameters
    ----------
    log : Log
    topics : collection of str
        The names of the topics in the log.
    interval_ms : int
        The minimum time between two purges by `purge_if_due`.
    clock : Clock
    """

    def __init__(self, log: Log, topics: Collection[str], interval_ms: int, clock: Clock) -> None:
        self._log = log
        self._topics = topics
        self._interval_ms = interval_ms
        self._clock = clock
        self._queries: list[CommittedSteps] = []
        self._last_positions: dict[TopicPartition, int] = {}
        self._last_ms = clock.uptime_ms()

    def add_reader(self, query: CommittedSteps) -> None:
        """Add a query whose unread records are not deleted."""
        self._queries.append(query)

    def purge_if_due(self) -> None:
        """Purge if the interval has passed."""
        if self._clock.uptime_ms() - self._last_ms >= self._interval_ms:
            self.purge()

    def purge(self) -> None:
        """Delete the records before the positions of the last purge, in partitions that were read further since."""
        self._last_ms = self._clock.uptime_ms()
        if not self._topics:
            return
        positions = self._positions()
        processed = {source: offset for source, offset in self._last_positions.items() if positions[source] > offset}
        if processed:
            with self._log.admin() as admin:
                admin.delete_records(processed)
        self._last_positions = positions

    def _positions(self) -> dict[TopicPartition, int]:
        """Return the lowest committed position of all queries in each partition."""
        lowest: dict[TopicPartition, int] = {}
        for query in self._queries:
            of_feeds = {source: offset for source, offset in query.positions().items() if source.topic in self._topics}
            lowest |= {source: min(offset, lowest.get(source, offset)) for source, offset in of_feeds.items()}
        return lowest

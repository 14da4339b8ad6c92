"""`FeedPurge`: deletes from the topics that DataFrames fill what steps have read; Spark restores no state from them."""

from __future__ import annotations

from collections.abc import Collection

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.runtime.spark.io.committed_steps import CommittedSteps


class FeedPurge:
    """Purges the topics of one application.

    The last step of a query may be read again after a crash. So what is deleted is what was read at an earlier look,
    where another step was committed since.

    Parameters
    ----------
    log : Log
    topics : collection of str
        Real names of the topics that DataFrames fill.
    interval_ms : int
        Least time between two looks of `look_if_due`.
    clock : Clock
    """

    def __init__(self, log: Log, topics: Collection[str], interval_ms: int, clock: Clock) -> None:
        self._log = log
        self._topics = topics
        self._interval_ms = interval_ms
        self._clock = clock
        self._queries: list[CommittedSteps] = []
        self._seen: dict[TopicPartition, int] = {}
        self._last_ms = clock.uptime_ms()

    def follow(self, query: CommittedSteps) -> None:
        """Keep what a query has not read."""
        self._queries.append(query)

    def look_if_due(self) -> None:
        """As `look`, if it is time."""
        if self._clock.uptime_ms() - self._last_ms >= self._interval_ms:
            self.look()

    def look(self) -> None:
        """Delete what was read at the last look, where more has been read since."""
        self._last_ms = self._clock.uptime_ms()
        if not self._topics:
            return
        read = self._read()
        processed = {source: at for source, at in self._seen.items() if read[source] > at}
        if processed:
            with self._log.admin() as admin:
                admin.delete_records(processed)
        self._seen = read

    def _read(self) -> dict[TopicPartition, int]:
        """Up to where all queries have read."""
        read: dict[TopicPartition, int] = {}
        for query in self._queries:
            of_feeds = {source: at for source, at in query.positions().items() if source.topic in self._topics}
            read |= {source: min(at, read.get(source, at)) for source, at in of_feeds.items()}
        return read

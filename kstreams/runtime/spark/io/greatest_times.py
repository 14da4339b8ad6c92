"""`GreatestTimes`: how late the records before a position are, from the headers of the log."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.batch import TopicPartition
from kstreams.log.api import Log
from kstreams.runtime.spark.io.log_ahead import NO_TIME, LogAhead

Positions = Mapping[TopicPartition, int]


class GreatestTimes:
    """The greatest timestamps of partitions before positions that grow: what was seen is not looked at again.

    Parameters
    ----------
    starts : mapping of TopicPartition to int
        Where the records begin that count; one that is not named counts from its beginning.
    """

    def __init__(self, starts: Positions) -> None:
        self._starts = dict(starts)
        self._known: dict[TopicPartition, tuple[int, int]] = {}

    def before(self, log: Log, positions: Positions) -> dict[TopicPartition, int]:
        """The greatest valid timestamp (ms) of each partition before its position; -1 where there is none."""
        with LogAhead(log) as ahead:
            for source, position in positions.items():
                at, latest_ms = self._known.get(source, (self._starts.get(source, 0), NO_TIME))
                times = [span.latest_ms for span in ahead.spans(source, at, position)]
                self._known[source] = position, max([latest_ms, *times])
        return {source: self._known[source][1] for source in positions}

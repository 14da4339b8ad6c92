"""`GreatestTimes`: how late the records before a position are, from what lies ahead of where they began."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.io.ahead.log_ahead import NO_TIME, Ahead

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

    def before(self, ahead: Ahead, positions: Positions) -> dict[TopicPartition, int]:
        """The greatest valid timestamp (ms) of each partition before its position; -1 where there is none."""
        for source, position in positions.items():
            at, latest_ms = self._known.get(source, (self._starts.get(source, 0), NO_TIME))
            times = [span.latest_ms for span in ahead.spans(source, at, position)]
            self._known[source] = position, max([latest_ms, *times])
        return {source: self._known[source][1] for source in positions}

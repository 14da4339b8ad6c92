"""`LogRecords`: the records of an offset range, which tasks read directly from the log, not through Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.runtime.spark.io.offset_ranges import OffsetRange
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.source import TopicReader


@dataclass(frozen=True)
class LogRecords:
    """The records of an offset range. Each iteration reads them again, batch by batch.

    Parameters
    ----------
    home : HomeAddress
    range : OffsetRange
    skippable : collection of str
        The topics whose records may have been deleted since.
    """

    home: HomeAddress
    range: OffsetRange
    skippable: Collection[str] = ()

    def __iter__(self) -> Iterator[Batch]:
        topic, partition, start, end = self.range
        source = TopicPartition(topic, partition)
        topics = TopicReader(self.home, [topic], end - start, self.skippable)
        for rows in topics.partitions_between({source: start}, {source: end}):
            yield from topics.read(rows)


def from_log(home: HomeAddress, ranges: Iterable[OffsetRange]) -> dict[TopicPartition, LogRecords]:
    """Return the records of offset ranges of different partitions."""
    return {
        TopicPartition(offset_range.topic, offset_range.partition): LogRecords(home, offset_range)
        for offset_range in ranges
    }

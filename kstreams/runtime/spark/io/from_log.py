"""Records of the log between two offsets, read where they are wanted: they never pass through Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kstreams.batch import Batch, TopicPartition
from kstreams.runtime.spark.io.offset_ranges import OffsetRange, OffsetRanges
from kstreams.runtime.spark.io.source import TopicReader


def from_log(home: str, ranges: Iterable[OffsetRange], missing: Collection[str] = ()) -> Iterator[Batch]:
    """The records of some offset ranges.

    Parameters
    ----------
    home : str
        Address of the home of topics.
    ranges : iterable of OffsetRange
    missing : collection of str
        Topics of which records may have been deleted since.
    """
    for topic, partition, start, end in ranges:
        source, topics = TopicPartition(topic, partition), TopicReader(home, [topic], end - start, missing)
        for rows in topics.partitions_between({source: start}, {source: end}):
            yield from topics.read(rows)


def count_records(home: str, topics: Iterable[str], ranges: OffsetRanges) -> int:
    """How many records of some topics a step reads: offsets alone do not tell, as what was aborted leaves gaps.

    Parameters
    ----------
    home : str
    topics : iterable of str
        A topic that is named twice is read twice.
    ranges : mapping
    """
    grown = [OffsetRange(*source, *read) for source, read in ranges.items() if read[1] > read[0]]
    wanted = [each for topic in topics for each in grown if each.topic == topic]
    return sum(map(len, from_log(home, wanted, {each.topic for each in wanted})))

"""Records of the log between two offsets, read where they are wanted: they never pass through Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kstreams.batch import Batch, TopicPartition
from kstreams.runtime.spark.io.offset_ranges import OffsetRange
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

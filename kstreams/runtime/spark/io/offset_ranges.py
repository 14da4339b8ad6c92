"""`OffsetRange`: which records of a topic partition a task reads in a step; the driver sends them to its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kstreams.kernel.batch import TopicPartition


class OffsetRange(NamedTuple):
    """The records [start, end) of one topic partition."""

    topic: str
    partition: int
    start: int
    end: int


OffsetRanges = Mapping[TopicPartition, tuple[int, int]]
"""Per source partition, the records [start, end) that a step reads."""


def ranges_of_task(ranges: OffsetRanges, topics: Iterable[str], partition: int) -> list[OffsetRange]:
    """What the task of a partition reads: that partition of every topic, where there is something new.

    Examples
    --------
    >>> ranges = {TopicPartition("a", 0): (0, 5), TopicPartition("a", 1): (2, 3), TopicPartition("b", 1): (4, 4)}
    >>> ranges_of_task(ranges, ["a", "b"], 1)
    [OffsetRange(topic='a', partition=1, start=2, end=3)]
    """
    sources = [TopicPartition(topic, partition) for topic in topics]
    grown = [(source, *ranges[source]) for source in sources if source in ranges]
    return [OffsetRange(*source, start, end) for source, start, end in grown if end > start]

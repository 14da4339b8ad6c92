"""`OffsetRange`: the records of a topic partition that a task reads in a step; the driver sends it to the task."""

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
"""By source partition: the records [start, end) that a step reads."""


def ranges_of_task(ranges: OffsetRanges, topics: Iterable[str], partition: int) -> list[OffsetRange]:
    """Return the non-empty offset ranges that the task of a partition number reads.

    Examples
    --------
    >>> ranges = {TopicPartition("a", 0): (0, 5), TopicPartition("a", 1): (2, 3), TopicPartition("b", 1): (4, 4)}
    >>> ranges_of_task(ranges, ["a", "b"], 1)
    [OffsetRange(topic='a', partition=1, start=2, end=3)]
    """
    sources = [TopicPartition(topic, partition) for topic in topics]
    grown = [(source, *ranges[source]) for source in sources if source in ranges]
    return [OffsetRange(*source, start, end) for source, start, end in grown if end > start]

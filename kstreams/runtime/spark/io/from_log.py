"""Records of the log between two offsets, read where they are wanted: they never pass through Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kstreams.batch import Batch, TopicPartition
from kstreams.runtime.spark.io.offset_ranges import OffsetRange, OffsetRanges
from kstreams.runtime.spark.io.source import TopicReader


def from_log(home: str, spans: Iterable[OffsetRange], missing: Collection[str] = ()) -> Iterator[Batch]:
    """The records of some spans.

    Parameters
    ----------
    home : str
    spans : iterable of OffsetRange
    missing : collection of str
        Topics of which records may have been deleted since.
    """
    for topic, partition, start, end in spans:
        source, topics = TopicPartition(topic, partition), TopicReader(home, [topic], end - start, missing)
        for piece in topics.between({source: start}, {source: end}):
            yield from topics.read(piece)


def count_records(home: str, topics: Iterable[str], moves: OffsetRanges) -> int:
    """How many records of some topics a step reads: offsets alone do not tell, as what was aborted leaves gaps.

    Parameters
    ----------
    home : str
    topics : iterable of str
        A topic that is named twice is read twice.
    moves : mapping
    """
    moved = [OffsetRange(*source, *move) for source, move in moves.items() if move[1] > move[0]]
    spans = [span for topic in topics for span in moved if span.topic == topic]
    return sum(map(len, from_log(home, spans, {span.topic for span in spans})))

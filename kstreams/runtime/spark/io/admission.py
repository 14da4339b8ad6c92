"""`admitted`: the records of the next step, chosen so that consecutive steps follow the order of the native engine.

A native task takes its next record from the partition whose next record has the lowest timestamp. The *reached* time of
a record is the greatest timestamp of its partition up to this record. So a task takes records in order of (reached,
topic, offset). Behind repartition topics, records stand at the places of the source records that they follow from
(`RecordOrder`). So the order of all records is (stream time, partition number, reached, topic, offset), and a step
takes the next records in this order.

Pure logic: records are read only near the end of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np

from kstreams.kernel.batch import Integers, TopicPartition
from kstreams.log.api import Span
from kstreams.runtime.spark.io.upcoming_records import NO_TIME

Read = Callable[[TopicPartition, int, int], tuple[Integers, Integers]]
"""Returns offsets and timestamps of the records [start, end) of a partition."""

NOTHING_READ: Mapping[int, int] = MappingProxyType({})
"""The stream times of tasks that have read nothing."""

Part = TypeVar("Part", bound=Hashable)


class Position(NamedTuple):
    """A position in the order in which records are admitted."""

    stream_ms: int
    partition: int
    reached_ms: int
    topic: str
    offset: int

    @property
    def source(self) -> TopicPartition:
        """The partition of the position."""
        return TopicPartition(self.topic, self.partition)


class Piece(NamedTuple):
    """Records of one partition between two positions of the order: from `start`, and before `end`."""

    start: Position
    end: Position
    records: int


def admitted(
    spans: Mapping[TopicPartition, Iterator[Span]],
    read: Read,
    limit: int,
    stream_times: Mapping[int, int] = NOTHING_READ,
) -> dict[TopicPartition, int]:
    """Return the end of a step that takes the next `limit` records of some partitions.

    Parameters
    ----------
    spans : mapping of TopicPartition to iterator of Span
        The upcoming records in order of offsets, consumed only as far as necessary.
    read : callable
        Called only for spans in which the step may end.
    limit : int
        At least 1.
    stream_times : mapping of int to int
        By partition number: the stream time (ms) of the task before these records.

    Returns
    -------
    dict of TopicPartition to int
        The offset before which the step ends, for each partition that has more records.

    Examples
    --------
    >>> a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    >>> times = {a: np.array([1, 9, 2, 3]), b: np.array([4, 5, 9, 12])}
    >>> spans = {a: [Span(0, 2, 2, 9), Span(2, 4, 2, 3)], b: [Span(0, 4, 4, 12)]}
    >>> read = lambda source, start, end: (np.arange(start, end), times[source][start:end])
    >>> step = admitted({source: iter(of_source) for source, of_source in spans.items()}, read, 5)
    >>> step[a], step[b]  # the times 1, 4, 5, 9, 2
    (3, 2)
    """
    pieces, remaining = _next_pieces(spans, limit, stream_times)
    counts = accumulate(piece.records for piece in pieces)
    beyond = next((piece.start for piece, count in zip(pieces, counts, strict=True) if count > limit), None)
    whole_pieces = [piece for piece in pieces if beyond is None or piece.end <= beyond]
    cut_pieces = [piece for piece in pieces if beyond is not None and piece.end > beyond]
    ends = {piece.start.source: piece.start.offset for piece in reversed(pieces)}
    ends |= {piece.start.source: piece.end.offset for piece in whole_pieces}
    ends |= _ends_within(cut_pieces, read, limit - sum(piece.records for piece in whole_pieces))
    end_offsets = {piece.start.source: piece.end.offset for piece in pieces}
    return {source: end for source, end in ends.items() if source in remaining or end < end_offsets[source]}


def _next_pieces(
    spans: Mapping[TopicPartition, Iterator[Span]], limit: int, stream_times: Mapping[int, int]
) -> tuple[list[Piece], set[TopicPartition]]:
    """Return the pieces with the next `limit` records in order of their starts, and the partitions with more spans.

    A piece is settled if all records outside the pieces come after its end. Settled pieces with `limit` records are
    enough.
    """
    pieces: list[Piece] = []
    ends: list[tuple[Position, int]] = []
    remaining = set(spans)
    settled = 0

    def add_next_piece(position: Position) -> None:
        span = next(spans[position.source], None)
        if span is None:
            remaining.remove(position.source)
        else:
            pieces.append(_piece(position, span))
            heappush(ends, (pieces[-1].end, span.records))

    for topic, partition in spans:
        add_next_piece(Position(stream_times.get(partition, NO_TIME), partition, NO_TIME, topic, 0))
    while ends and settled < limit:
        position, records = heappop(ends)
        settled += records
        if settled < limit:
            add_next_piece(position)
    return sorted(pieces), remaining


def _piece(before: Position, span: Span) -> Piece:
    """Return the piece of a span that follows a position."""
    stream_ms = max(before.stream_ms, span.latest_ms)
    reached_ms = max(before.reached_ms, span.latest_ms)
    end = before._replace(stream_ms=stream_ms, reached_ms=reached_ms, offset=span.end)
    return Piece(before._replace(offset=span.start), end, span.records)


def _ends_within(cut_pieces: list[Piece], read: Read, limit: int) -> dict[TopicPartition, int]:
    """Return the ends of a step that takes the first `limit` records of these pieces."""
    if not cut_pieces:
        return {}
    pieces = sorted(cut_pieces, key=lambda piece: (piece.start.partition, piece.start.topic, piece.start.offset))
    times_of_pieces = [read(piece.start.source, piece.start.offset, piece.end.offset) for piece in pieces]
    counts = [len(offsets) for offsets, _ in times_of_pieces]
    starts = np.repeat([piece.start[:3] for piece in pieces], counts, axis=0)
    times = np.concatenate([np.maximum.accumulate(times) for _, times in times_of_pieces])
    # The sort is stable, so records of one time stay in order of topics and offsets.
    order = np.lexsort((np.maximum(starts[:, 2], times), starts[:, 1], np.maximum(starts[:, 0], times)))
    pieces_of_records = np.repeat(np.arange(len(pieces)), counts)
    counts_of_pieces = np.bincount(pieces_of_records[order[:limit]], minlength=len(pieces)).tolist()
    return {
        piece.start.source: int(offsets[count - 1]) + 1
        for piece, (offsets, _), count in zip(pieces, times_of_pieces, counts_of_pieces, strict=True)
        if count
    }


def split_evenly(backlog: Mapping[Part, int], limit: int) -> dict[Part, int]:
    """Divide `limit` rows among parts in proportion to their backlogs.

    Examples
    --------
    >>> split_evenly({"a": 300, "b": 100}, 40) == {"a": 30, "b": 10}
    True
    """
    total = sum(backlog.values())
    if total <= limit:
        return dict(backlog)
    shares = {part: rows * limit // total for part, rows in backlog.items()}
    remaining = limit - sum(shares.values())
    for part in sorted(backlog, key=lambda part: backlog[part] * limit % total, reverse=True)[:remaining]:
        shares[part] += 1
    return shares

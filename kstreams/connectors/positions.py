"""The positions of the splits of a source: records of a compacted topic, written together with those of the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kstreams.connectors.api import Position
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.kernel.murmur2 import partition_of
from kstreams.log.api import Log

_POLL_S = 0.1


def task_of(split: str, tasks: int) -> int:
    """Return the number of the task that reads a split.

    Examples
    --------
    >>> task_of("in/trades.csv", 4)
    1
    """
    return partition_of(split.encode(), tasks)


def read_positions(log: Log, source: TopicPartition) -> dict[str, Position]:
    """Return the position of each split of a task, whose former owner can no longer write."""
    positions: dict[str, Position] = {}
    for row in rows_of(log, source):
        _apply(positions, row)
    return positions


def rows_of(log: Log, source: TopicPartition, first_offset: int | None = None) -> Iterator[Row]:
    """Yield the committed records of a partition up to its present end.

    Parameters
    ----------
    log : Log
    source : TopicPartition
    first_offset : int, optional
        Where to begin. Earlier records may be deleted already.
    """
    with log.consumer() as consumer:
        consumer.assign([source])
        end = consumer.end_offsets([source])[source]
        if first_offset is not None:
            with log.admin() as admin:
                beginning = admin.beginning_offsets([source])[source]
            consumer.seek(source, max(first_offset, beginning))
        while consumer.position(source) < end:
            for batch in consumer.poll(_POLL_S):
                yield from batch.rows()


def positions_batch(source: TopicPartition, positions: Mapping[str, Position], now_ms: int) -> Batch:
    """Return the records of positions."""
    rows = [Row(split.encode(), msgspec.json.encode(position), now_ms, ()) for split, position in positions.items()]
    return Batch.of_rows(source, rows)


def _apply(positions: dict[str, Position], row: Row) -> None:
    split = (row.key or b"").decode()
    if row.value is None:
        positions.pop(split, None)
    else:
        positions[split] = decode_json(row.value)

"""The columns of records in Spark, and conversions between them and `Batch`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import TypeAlias, cast

import pyarrow as pa

from kstreams.kernel.batch import HEADERS_TYPE, Batch, Integers, TopicPartition

ArrowFunction: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function for `DataFrame.mapInArrow`."""


def titled(function: ArrowFunction, title: str) -> ArrowFunction:
    """Give a function the name by which Spark's UI shows it in plans."""
    cast(FunctionType, function).__name__ = title
    return function


SCHEMA = (
    "topic string, partition int, offset bigint, timestamp bigint, key binary, value binary, "
    "headers array<struct<name: string, value: binary>>"
)
"""The Spark schema of records; `timestamp` is milliseconds since the epoch."""

ARROW_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS_TYPE),
    ]
)
"""The Arrow schema of records."""


def record_batch(batch: Batch) -> pa.RecordBatch:
    """Convert a batch to Spark's columns.

    Examples
    --------
    >>> from kstreams.kernel.batch import Row
    >>> record_batch(Batch.of_rows(TopicPartition("t", 3), [Row(b"k", None, 5, ())])).to_pylist()[0]["partition"]
    3
    """
    count = len(batch)
    columns = [
        pa.repeat(pa.scalar(batch.source.topic, pa.string()), count),
        pa.repeat(pa.scalar(batch.source.partition, pa.int32()), count),
        pa.array(batch.offsets, pa.int64()),
        batch.timestamps,
        batch.keys,
        batch.values,
        batch.headers_or_nulls,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)


OUT_SCHEMA = f"{SCHEMA}, origin bigint, stream_time bigint"
"""The Spark schema of rows that tasks write. `origin` identifies the writing task, `offset` counts its rows, and
`stream_time` is the task's stream time when it wrote the row (`kstreams/processor/task/outputs.py`)."""

ARROW_OUT_SCHEMA = ARROW_SCHEMA.append(pa.field("origin", pa.int64())).append(pa.field("stream_time", pa.int64()))
"""The Arrow schema of written rows."""


def batch_of(
    source: TopicPartition, rows: pa.Table, written_at: Integers | None = None, ranks: Integers | None = None
) -> Batch:
    """Return rows of one topic partition as a batch; `written_at` and `ranks` as in `Batch`."""
    rows = rows.combine_chunks()
    keys, values, timestamps, headers = (whole(rows[name]) for name in ("key", "value", "timestamp", "headers"))
    bare = headers.null_count == len(headers)
    offsets = rows["offset"].to_numpy()
    header_rows = None if bare else headers
    return Batch(source, offsets, keys, values, timestamps, header_rows, written_at=written_at, ranks=ranks)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one chunk."""
    array = column.combine_chunks()
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


FAR_FUTURE_MS = 253_370_764_800_000
"""The year 9999: the time of the row that ends bounded input in Spark."""

Offsets = dict[str, dict[str, int]]
"""Topic -> partition (a string, since JSON has no other keys) -> next offset."""


def offsets_of(positions: Mapping[TopicPartition, int]) -> Offsets:
    """Convert positions to the form of JSON."""
    offsets: Offsets = {}
    for (topic, partition), offset in sorted(positions.items()):
        offsets.setdefault(topic, {})[str(partition)] = int(offset)
    return offsets


def positions_of(offsets: Offsets) -> dict[TopicPartition, int]:
    """Convert the form of JSON to positions."""
    return {TopicPartition(t, int(p)): offset for t, of_topic in offsets.items() for p, offset in of_topic.items()}


def ranges(start: int, end: int, rows: int) -> Sequence[tuple[int, int]]:
    """Divide [start, end) into ranges of at most `rows`.

    Examples
    --------
    >>> ranges(0, 5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(first, min(end, first + rows)) for first in range(start, end, rows)]

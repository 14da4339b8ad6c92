"""Blocks: many rows as one row of Spark, so that Spark moves bytes between tasks and never looks at a record.

A block holds rows of one topic partition that one task wrote, in order. Spark shuffles, sorts and keeps blocks; what a
row of its own costs on the way through the JVM, to and fro, was nine tenths of a repartition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kstreams.runtime.spark.io.rows import ARROW_OUT_SCHEMA, OUT_SCHEMA

CONTROL_TOPIC = ""
"""The topic of control blocks: each task gets one, so that it runs without input too, and returns one: its report."""

BLOCK_SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("origin", LongType()),
        StructField("number", LongType()),
        StructField("stream_time", LongType()),
        StructField("rows", BinaryType()),
    ]
)
"""Blocks as a Spark schema; `number` is the offset of the first row, `stream_time` (ms) when it was written."""

ARROW_BLOCK_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("origin", pa.int64()),
        ("number", pa.int64()),
        ("stream_time", pa.int64()),
        ("rows", pa.binary()),
    ]
)
"""The same as an Arrow schema."""

MOST_ROWS = 50_000
"""In a block: a task holds a few blocks of each of its writers at a time."""

_SAME = ("topic", "partition", "origin")
_CONTENT = pa.schema([field for field in ARROW_OUT_SCHEMA if field.name not in _SAME])


class Block(NamedTuple):
    """Rows of one topic partition by one writer; of a control block, its content."""

    topic: str
    partition: int
    origin: int
    number: int
    stream_time: int
    rows: bytes | pa.Buffer

    def table(self) -> pa.Table:
        """The rows, columns as in `ARROW_OUT_SCHEMA`."""
        content = pa.ipc.read_record_batch(self.rows, _CONTENT)
        count = len(content)
        same = {
            name: pa.repeat(pa.scalar(getattr(self, name), ARROW_OUT_SCHEMA.field(name).type), count) for name in _SAME
        }
        columns = [same[name] if name in same else content[name] for name in ARROW_OUT_SCHEMA.names]
        return pa.Table.from_arrays(columns, schema=ARROW_OUT_SCHEMA)


def blocks_of(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows (columns as in `ARROW_OUT_SCHEMA`) as blocks; control rows as control blocks.

    Examples
    --------
    >>> row = dict.fromkeys(ARROW_OUT_SCHEMA.names, 0) | dict(topic="t", key=b"k", value=b"v", headers=[])
    >>> rows = [row | {"partition": p, "offset": offset} for offset, p in enumerate([1, 0, 1])]
    >>> blocks = blocks_of(pa.RecordBatch.from_pylist(rows, schema=ARROW_OUT_SCHEMA))
    >>> [(block.partition, block.table()["offset"].to_pylist()) for block in blocks_in([blocks])]
    [(0, [1]), (1, [0, 2])]
    """
    order, bounds = _groups(rows)
    if order is not None:
        rows = rows.take(order)
    content = rows.select(_CONTENT.names)
    made = [_block(rows, content, start, stop) for start, stop in pairwise(bounds)]
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*made, strict=True), ARROW_BLOCK_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_BLOCK_SCHEMA)


def _groups(rows: pa.RecordBatch) -> tuple[pa.Array | None, list[int]]:
    """An order in which the rows of a block lie together (None: they do), and where blocks begin and end."""
    codes = rows["topic"].dictionary_encode().indices.to_numpy()
    keys = np.stack([codes, rows["partition"].to_numpy(), rows["origin"].to_numpy()])
    order = np.lexsort(keys[::-1])
    sorted_keys = keys[:, order]
    starts = np.flatnonzero((sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0)) + 1
    bounds = [0, *starts.tolist(), len(order)] if len(order) else [0]
    return (None if len(bounds) == 2 else pa.array(order)), bounds


def _block(rows: pa.RecordBatch, content: pa.RecordBatch, start: int, stop: int) -> Block:
    topic, partition, origin = (rows[name][start].as_py() for name in _SAME)
    first = content.slice(start, 1)
    if topic == CONTROL_TOPIC:
        return Block(topic, partition, origin, 0, 0, first["value"][0].as_py())
    number, stream_time = first["offset"][0].as_py(), first["stream_time"][0].as_py()
    return Block(
        topic, partition, origin, number, stream_time, content.slice(start, stop - start).serialize().to_pybytes()
    )


def blocks_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """The blocks that Spark hands to a Python function."""
    for batch in batches:
        rows, places = batch["rows"], batch.drop_columns(["rows"]).to_pylist()
        for index, place in enumerate(places):
            yield Block(**place, rows=rows[index].as_buffer())


def rows_of(blocks: Iterable[Block]) -> pa.Table:
    """The rows of some blocks, columns as in `ARROW_OUT_SCHEMA`."""
    return pa.concat_tables([ARROW_OUT_SCHEMA.empty_table(), *(block.table() for block in blocks)])


def in_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a Python function yields as rows, as blocks."""
    for batch in batches:
        for start in range(0, len(batch), MOST_ROWS):
            yield blocks_of(batch.slice(start, MOST_ROWS))


def as_rows(blocks: DataFrame) -> DataFrame:
    """Blocks of records as rows of Spark, columns as in `OUT_SCHEMA`."""
    return blocks.mapInArrow(_rows_in_arrow, OUT_SCHEMA)


def _rows_in_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for block in blocks_in(batches):
        yield from block.table().to_batches()

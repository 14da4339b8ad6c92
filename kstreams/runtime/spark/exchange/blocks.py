"""Blocks: many rows as one row of Spark, so that Spark moves bytes between tasks and never looks at a record.

A block holds rows of one topic partition that one task wrote, in order. Spark shuffles, sorts and keeps blocks; what a
row of its own costs on the way through the JVM, to and fro, was nine tenths of a repartition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kstreams.kernel.batch import HEADERS_TYPE
from kstreams.log.partitioning import rows_by_partition
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.runtime.spark.exchange.rows import ARROW_OUT_SCHEMA, OUT_SCHEMA, Longs

CONTROL_TOPIC = ""
"""The topic of control blocks. Each task receives one, also without input, and returns its report as one."""

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
"""The Spark schema of blocks; `number` is the offset of the first row, `stream_time` (ms) the time of its write."""

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
"""The Arrow schema of blocks."""

MOST_ROWS = 50_000
"""The most rows of a block."""

_CONTENT = pa.schema(
    [ARROW_OUT_SCHEMA.field(name) for name in ("offset", "timestamp", "key", "value", "headers", "stream_time")]
)


class Block(NamedTuple):
    """Rows of one topic partition by one writer. A control block holds a report, or None as the order to run."""

    topic: str
    partition: int
    origin: int
    number: int
    stream_time: int
    rows: bytes | pa.Buffer | None

    def content(self) -> pa.RecordBatch:
        """Return the columns whose values differ between rows."""
        return pa.ipc.read_record_batch(self.rows, _CONTENT)

    def table(self) -> pa.Table:
        """Return the rows, in the columns of `ARROW_OUT_SCHEMA`."""
        content = self.content()
        address = {"topic": self.topic, "partition": self.partition, "origin": self.origin}
        columns = {
            field.name: pa.repeat(pa.scalar(address[field.name], field.type), len(content))
            if field.name in address
            else content[field.name]
            for field in ARROW_OUT_SCHEMA
        }
        return pa.Table.from_pydict(columns, schema=ARROW_OUT_SCHEMA)


def blocks_of(topic: str, origin: int, offsets: Longs, rows: EncodedRows, partitions: Longs) -> Iterator[Block]:
    """Divide rows of one writer into blocks, a few for each partition.

    Parameters
    ----------
    topic : str
    origin : int
        Names the writer.
    offsets : numpy int64 array, shape (n,)
        The rows of a writer are in order of them.
    rows : EncodedRows
    partitions : numpy int64 array, shape (n,)

    Examples
    --------
    >>> keys, times = pa.array([b"a", b"b", b"c"], pa.binary()), pa.array([1, 2, 3])
    >>> made = list(blocks_of("t", 0, np.arange(3), EncodedRows(keys, keys, times), np.array([1, 0, 1])))
    >>> [(block.partition, block.number, block.content()["key"].to_pylist()) for block in made]
    [(0, 1, [b'b']), (1, 0, [b'a', b'c'])]
    """
    headers = pa.nulls(len(offsets), HEADERS_TYPE) if rows.headers is None else rows.headers
    times = rows.timestamps if rows.stream_times is None else rows.stream_times
    columns = [pa.array(offsets, pa.int64()), rows.timestamps, rows.keys, rows.values, headers, times]
    content = pa.RecordBatch.from_arrays(columns, schema=_CONTENT)
    for partition, places in rows_by_partition(partitions):
        mine = content if len(places) == len(content) else content.take(pa.array(places))
        for start in range(0, len(mine), MOST_ROWS):
            piece = mine.slice(start, MOST_ROWS)
            number = piece["offset"][0].as_py()
            time = piece["stream_time"][0].as_py()
            yield Block(topic, partition, origin, number, time, piece.serialize())


def in_arrow(blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
    """Convert blocks to the record batches that a Python function returns to Spark."""
    for *place, rows in blocks:
        columns = [pa.array([item], field.type) for item, field in zip(place, ARROW_BLOCK_SCHEMA, strict=False)]
        yield pa.RecordBatch.from_arrays([*columns, _one_binary(rows)], schema=ARROW_BLOCK_SCHEMA)


def _one_binary(content: bytes | pa.Buffer) -> pa.Array:
    """Return a column of one row, without copying the row."""
    buffer = pa.py_buffer(content)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(np.array([0, buffer.size], np.int32)), buffer])


def blocks_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Yield the blocks in the record batches that Spark passes to a Python function."""
    for batch in batches:
        rows = batch["rows"]
        places = batch.drop_columns(["rows"]).to_pylist()
        for index, place in enumerate(places):
            yield Block(**place, rows=rows[index].as_buffer())


def rows_of(blocks: Iterable[Block]) -> pa.Table:
    """Return the rows of some blocks, in the columns of `ARROW_OUT_SCHEMA`."""
    return pa.concat_tables([ARROW_OUT_SCHEMA.empty_table(), *(block.table() for block in blocks)])


def as_rows(blocks: DataFrame) -> DataFrame:
    """Convert blocks of records to rows of Spark, in the columns of `OUT_SCHEMA`."""
    return blocks.mapInArrow(_rows_in_arrow, OUT_SCHEMA)


def _rows_in_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for block in blocks_in(batches):
        yield from block.table().to_batches()

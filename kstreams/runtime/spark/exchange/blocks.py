"""Blocks: many records as one row of Spark, so that Spark shuffles bytes and never reads a record.

A block holds rows of one topic partition that one task wrote, in order. With one row of Spark per record, the way
through the JVM and back took 90 % of the time of a repartition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kstreams.kernel.batch import HEADERS_TYPE, Integers
from kstreams.log.partitioning import rows_by_partition
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.runtime.spark.exchange.rows import ARROW_OUT_SCHEMA, OUT_SCHEMA

CONTROL_TOPIC = ""
"""The topic of control blocks. Each task receives a control block even without input, and returns its report as one."""

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
"""The Spark schema of blocks; `number` is the offset of the first row, `stream_time` its stream time in ms."""

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

MAX_ROWS = 50_000
"""The maximum number of rows of a block."""

_CONTENT = pa.schema(
    [ARROW_OUT_SCHEMA.field(name) for name in ("offset", "timestamp", "key", "value", "headers", "stream_time")]
).append(pa.field("rank", pa.int64()))
"""The columns that a block stores per row. `rank` is null in topics whose rows have no ranks (`RecordOrder`)."""


class Block(NamedTuple):
    """Rows of one topic partition by one writer. A control block holds a report, or None to make a task run."""

    topic: str
    partition: int
    origin: int
    number: int
    stream_time: int
    rows: bytes | pa.Buffer | None

    def content(self) -> pa.RecordBatch:
        """Return the columns that are stored per row."""
        return pa.ipc.read_record_batch(self.rows, _CONTENT)

    def table(self) -> pa.Table:
        """Return the rows, in the columns of `ARROW_OUT_SCHEMA`."""
        content = self.content()
        constants = {"topic": self.topic, "partition": self.partition, "origin": self.origin}
        columns = {
            field.name: pa.repeat(pa.scalar(constants[field.name], field.type), len(content))
            if field.name in constants
            else content[field.name]
            for field in ARROW_OUT_SCHEMA
        }
        return pa.Table.from_pydict(columns, schema=ARROW_OUT_SCHEMA)


def blocks_of(topic: str, origin: int, offsets: Integers, rows: EncodedRows, partitions: Integers) -> Iterator[Block]:
    """Divide rows of one writer into blocks, a few for each partition.

    Parameters
    ----------
    topic : str
    origin : int
        Identifies the writer.
    offsets : numpy int64 array, shape (n,)
        The position of each row in the output of the writer, in ascending order.
    rows : EncodedRows
    partitions : numpy int64 array, shape (n,)

    Examples
    --------
    >>> keys, times = pa.array([b"a", b"b", b"c"], pa.binary()), pa.array([1, 2, 3])
    >>> blocks = list(blocks_of("t", 0, np.arange(3), EncodedRows(keys, keys, times), np.array([1, 0, 1])))
    >>> [(block.partition, block.number, block.content()["key"].to_pylist()) for block in blocks]
    [(0, 1, [b'b']), (1, 0, [b'a', b'c'])]
    """
    headers = pa.nulls(len(offsets), HEADERS_TYPE) if rows.headers is None else rows.headers
    times = rows.timestamps if rows.stream_times is None else rows.stream_times
    ranks = pa.nulls(len(offsets), pa.int64()) if rows.ranks is None else rows.ranks
    columns = [pa.array(offsets, pa.int64()), rows.timestamps, rows.keys, rows.values, headers, times, ranks]
    content = pa.RecordBatch.from_arrays(columns, schema=_CONTENT)
    for partition, indices in rows_by_partition(partitions):
        of_partition = content if len(indices) == len(content) else content.take(pa.array(indices))
        for start in range(0, len(of_partition), MAX_ROWS):
            slice_of_rows = of_partition.slice(start, MAX_ROWS)
            number = slice_of_rows["offset"][0].as_py()
            time_ms = slice_of_rows["stream_time"][0].as_py()
            yield Block(topic, partition, origin, number, time_ms, slice_of_rows.serialize())


def in_arrow(blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
    """Convert blocks to the record batches that a Python function returns to Spark."""
    for *values, rows in blocks:
        columns = [pa.array([value], field.type) for value, field in zip(values, ARROW_BLOCK_SCHEMA, strict=False)]
        yield pa.RecordBatch.from_arrays([*columns, _one_binary(rows)], schema=ARROW_BLOCK_SCHEMA)


def _one_binary(content: bytes | pa.Buffer) -> pa.Array:
    """Return a column of one row, without copying the row."""
    buffer = pa.py_buffer(content)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(np.array([0, buffer.size], np.int32)), buffer])


def blocks_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Yield the blocks in the record batches that Spark passes to a Python function."""
    for batch in batches:
        rows = batch["rows"]
        other_columns = batch.drop_columns(["rows"]).to_pylist()
        for index, values in enumerate(other_columns):
            yield Block(**values, rows=rows[index].as_buffer())


def rows_of(blocks: Iterable[Block]) -> pa.Table:
    """Return the rows of some blocks, in the columns of `ARROW_OUT_SCHEMA`."""
    return pa.concat_tables([ARROW_OUT_SCHEMA.empty_table(), *(block.table() for block in blocks)])


def as_rows(blocks: DataFrame) -> DataFrame:
    """Convert blocks of records to rows of Spark, in the columns of `OUT_SCHEMA`."""
    return blocks.mapInArrow(_rows_in_arrow, OUT_SCHEMA)


def _rows_in_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for block in blocks_in(batches):
        yield from block.table().to_batches()

"""`records_of`: the rows of a DataFrame as records with keys, values, times and partitions, in topic order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from kstreams.dsl.frame_rows import CHANGES
from kstreams.errors import ProcessingError
from kstreams.kernel.decoders import convert
from kstreams.log.partitioning import partitions_of
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.runtime.spark.exchange.rows import ArrowFunction
from kstreams.serdes import Serde

RECORDS = "partition int, version bigint, present int, timestamp bigint, key binary, value binary"
"""The Spark schema of records; a partition is sorted by these columns. `present` is 0 for deleted rows."""

_CHANGE, _VERSION, _COMMIT_TIME = CHANGES
_DELETING_CHANGES = "delete", "update_preimage"


def records_of(rows: DataFrame, feed: Feed, partitions: int, now_ms: int, slots: int) -> DataFrame:
    """Return records as `RECORDS`; each topic partition is in one Spark partition, in order.

    Parameters
    ----------
    rows : DataFrame
        Some rows of the feed.
    feed : Feed
    partitions : int
        The number of partitions of the topic.
    now_ms : int
        The timestamp of rows without a time column.
    slots : int
        The number of Spark partitions that write.
    """
    names = rows.columns
    are_changes = set(CHANGES) <= set(rows.columns)
    present = F.lit(1) if not are_changes else F.when(F.col(_CHANGE).isin(*_DELETING_CHANGES), 0).otherwise(1)
    columns = rows.select(
        F.struct(*(F.col(f"`{name}`") for name in names if name not in CHANGES)).alias("row"),
        (F.lit(None).cast("string") if feed.key is None else F.col(f"`{feed.key}`")).alias("key"),
        (F.col(_VERSION) if are_changes else F.lit(0)).cast("bigint").alias("version"),
        present.alias("present"),
        _time(rows, feed, now_ms, are_changes=are_changes).cast("bigint").alias("timestamp"),
    )
    current = _without_replaced(columns) if are_changes else columns
    records = current.mapInArrow(_encoded(feed, partitions), RECORDS)
    writers = min(slots, partitions)
    shuffled = records.repartitionById(writers, F.col("partition") % writers)
    return shuffled.sortWithinPartitions(*records.columns)


def _without_replaced(rows: DataFrame) -> DataFrame:
    """Drop deleted rows whose key has a present row in the same version."""
    of_key = Window.partitionBy("version", "key")
    with_has_row = rows.withColumn("has_row", F.max("present").over(of_key))
    return with_has_row.where("present = has_row OR key IS NULL").drop("has_row")


def _time(rows: DataFrame, feed: Feed, now_ms: int, *, are_changes: bool) -> Column:
    name = feed.timestamp or (_COMMIT_TIME if are_changes else None)
    return F.lit(now_ms) if name is None else time_of(rows, name)


def time_of(rows: DataFrame, name: str) -> Column:
    """Convert a column of times to milliseconds."""
    column = F.col(f"`{name}`")
    return column if isinstance(rows.schema[name].dataType, LongType) else F.unix_millis(column.cast("timestamp"))


def _encoded(feed: Feed, partitions: int) -> ArrowFunction:
    packed = pack((feed.name, feed.declared_at, feed.row, feed.key, feed.serdes))

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name, line, row_type, key, (key_serde, value_serde) = unpack(packed)
        encoder = _Encoder(row_type, None if key is None else key_serde, value_serde, partitions)
        context = TaskContext.get()
        partition_without_key = (context.partitionId() if context else 0) % partitions
        for batch in batches:
            try:
                yield encoder.records(batch, partition_without_key)
            except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
                raise ProcessingError(name, line, _row_in_error(batch), error) from error

    return encode


class _Encoder(NamedTuple):
    """The conversion of the rows of a feed to records.

    Parameters
    ----------
    row_type : type
    key_serde : Serde or None
        None if the records have no keys.
    value_serde : Serde
    partitions : int
        The number of partitions of the topic.
    """

    row_type: Any
    key_serde: Serde | None
    value_serde: Serde
    partitions: int

    def records(self, batch: pa.RecordBatch, partition_without_key: int) -> pa.RecordBatch:
        """Convert rows, and choose the partition of each record by its key."""
        times = batch["timestamp"]
        if times.null_count:
            raise ValueError("a row has no time")
        rows = convert(batch["row"].to_pylist(), list[self.row_type], strict=False)  # type: ignore[name-defined]
        is_present = batch["present"].to_pylist()
        values = self.value_serde.encode_rows(
            [row if present else None for row, present in zip(rows, is_present, strict=True)]
        )
        keys = pa.nulls(len(batch), pa.binary()) if self.key_serde is None else _keys(batch["key"], self.key_serde)
        by_key = partitions_of(keys, self.partitions)
        partitions = pa.array(np.where(by_key < 0, partition_without_key, by_key), pa.int32())
        version = batch["version"].cast(pa.int64())
        present = batch["present"].cast(pa.int32())
        return pa.RecordBatch.from_arrays([partitions, version, present, times, keys, values], names=[*_NAMES])


_NAMES = "partition", "version", "present", "timestamp", "key", "value"


def _keys(column: pa.Array, serde: Serde[object]) -> pa.Array:
    if serde.arrow_type is not None:
        return serde.encode_column(column.cast(serde.arrow_type)).cast(pa.binary())
    return serde.encode_rows(convert(column.to_pylist(), list[serde.type | None], strict=False))  # type: ignore


def _row_in_error(batch: pa.RecordBatch) -> str:
    """Return a row as text for errors: the first one without a time, or the first one."""
    null_rows = np.flatnonzero(batch["timestamp"].is_null().to_numpy(zero_copy_only=False))
    row = batch["row"][int(null_rows[0]) if len(null_rows) else 0].as_py()
    return f"Row({', '.join(f'{name}={value!r}' for name, value in row.items())})"

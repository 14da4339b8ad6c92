"""`records_of`: the rows of a DataFrame as records with keys, values, times and partitions, in topic order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

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
from kstreams.serdes import Serde

RECORDS = "partition int, version bigint, present int, timestamp bigint, key binary, value binary"
"""The Spark schema of records; a partition is sorted by these columns."""

_CHANGE, _VERSION, _COMMITTED = CHANGES
_GONE = "delete", "update_preimage"


def records_of(rows: DataFrame, feed: Feed, partitions: int, now_ms: int, slots: int) -> DataFrame:
    """Return records as `RECORDS`; each topic partition is in one Spark partition, in order.

    Parameters
    ----------
    rows : DataFrame
        Some rows of the feed.
    feed : Feed
    partitions : int
        Of the topic.
    now_ms : int
        The time of rows that tell none.
    slots : int
        The number of Spark partitions that write.
    """
    names = rows.columns
    changes = set(CHANGES) <= set(rows.columns)
    present = F.lit(1) if not changes else F.when(F.col(_CHANGE).isin(*_GONE), 0).otherwise(1)
    chosen = rows.select(
        F.struct(*(F.col(f"`{name}`") for name in names if name not in CHANGES)).alias("row"),
        (F.lit(None).cast("string") if feed.key is None else F.col(f"`{feed.key}`")).alias("key"),
        (F.col(_VERSION) if changes else F.lit(0)).cast("bigint").alias("version"),
        present.alias("present"),
        _time(rows, feed, now_ms, changes=changes).cast("bigint").alias("timestamp"),
    )
    records = (_without_replaced(chosen) if changes else chosen).mapInArrow(_encoded(feed, partitions), RECORDS)
    placed = records.repartitionById(min(slots, partitions), F.col("partition") % min(slots, partitions))
    return placed.sortWithinPartitions(*records.columns)


def _without_replaced(rows: DataFrame) -> DataFrame:
    """Drop deleted rows whose key has a present row in the same version."""
    of_key = Window.partitionBy("version", "key")
    marked = rows.withColumn("has_row", F.max("present").over(of_key))
    return marked.where("present = has_row OR key IS NULL").drop("has_row")


def _time(rows: DataFrame, feed: Feed, now_ms: int, *, changes: bool) -> Column:
    name = feed.timestamp or (_COMMITTED if changes else None)
    return F.lit(now_ms) if name is None else time_of(rows, name)


def time_of(rows: DataFrame, name: str) -> Column:
    """Convert a column of times to milliseconds."""
    column = F.col(f"`{name}`")
    return column if isinstance(rows.schema[name].dataType, LongType) else F.unix_millis(column.cast("timestamp"))


def _encoded(feed: Feed, partitions: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    packed = pack((feed.name, feed.declared_at, feed.row, feed.key, feed.serdes))

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name, line, row, key, (key_serde, value_serde) = unpack(packed)
        context = TaskContext.get()
        own = (context.partitionId() if context else 0) % partitions
        for batch in batches:
            try:
                yield _records(batch, (row, key is not None), key_serde, value_serde, partitions, own)
            except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
                raise ProcessingError(name, line, _first(batch), error) from error

    return encode


def _records(
    batch: pa.RecordBatch,
    form: tuple[Any, bool],
    key_serde: Serde,
    value_serde: Serde,
    partitions: int,
    own: int,
) -> pa.RecordBatch:
    row, has_key = form
    times = batch["timestamp"]
    if times.null_count:
        raise ValueError("a row has no time")
    rows = convert(batch["row"].to_pylist(), list[row], strict=False)  # type: ignore[valid-type]
    present = batch["present"].to_pylist()
    values = value_serde.encode_rows(
        [value if is_present else None for value, is_present in zip(rows, present, strict=True)]
    )
    keys = _keys(batch["key"], key_serde) if has_key else pa.nulls(len(batch), pa.binary())
    chosen = partitions_of(keys, partitions)
    placed = pa.array(np.where(chosen < 0, own, chosen), pa.int32())
    version, present = (batch[name].cast(kind) for name, kind in (("version", pa.int64()), ("present", pa.int32())))
    columns = [placed, version, present, times, keys, values]
    return pa.RecordBatch.from_arrays(columns, names=[*_NAMES])


_NAMES = "partition", "version", "present", "timestamp", "key", "value"


def _keys(column: pa.Array, serde: Serde[object]) -> pa.Array:
    if serde.arrow_type is not None:
        return serde.encode_column(column.cast(serde.arrow_type)).cast(pa.binary())
    return serde.encode_rows(convert(column.to_pylist(), list[serde.type | None], strict=False))  # type: ignore


def _first(batch: pa.RecordBatch) -> str:
    """Return a row as text for errors."""
    null_rows = np.flatnonzero(batch["timestamp"].is_null().to_numpy(zero_copy_only=False))
    row = batch["row"][int(null_rows[0]) if len(null_rows) else 0].as_py()
    return f"Row({', '.join(f'{name}={value!r}' for name, value in row.items())})"

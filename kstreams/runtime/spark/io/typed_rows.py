"""`TypedRows`: records as rows of DataFrames and Delta tables, with typed columns if the types are known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kstreams.kernel.batch import HEADERS_TYPE
from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.runtime.spark.exchange.rows import ArrowFunction
from kstreams.serdes import Serde
from kstreams.serdes.arrow_types import typed_column

Serdes = tuple[Serde | None, Serde | None]
"""The serdes of keys and values; None for columns of bytes."""

BYTES: Serdes = (None, None)

DELETED = "_deleted"
"""The column that is true for tombstones, since a null in a typed column need not be a tombstone."""

_TIME = pa.timestamp("us", "UTC")
_EMPTY = {
    "key": pa.array([], pa.binary()),
    "value": pa.array([], pa.binary()),
    "timestamp": pa.array([], pa.int64()),
    "partition": pa.array([], pa.int32()),
    "headers": pa.array([], HEADERS_TYPE),
}


class TypedRows:
    """The rows of a topic with the columns key, value, timestamp, partition, headers and `DELETED`.

    Parameters
    ----------
    serdes : pair of Serde or None
    """

    def __init__(self, serdes: Serdes) -> None:
        self._packed = pack(serdes)
        self._schema = from_arrow_schema(_typed(serdes, pa.table(_EMPTY)).schema, prefer_timestamp_ntz=False)

    def of(self, rows: DataFrame) -> DataFrame:
        """Convert records, whose keys and values are bytes and whose timestamps are milliseconds, to these columns."""
        return rows.mapInArrow(_in_arrow(self._packed), self._schema)


def serdes_written(sub_topologies: Iterable[SubTopology]) -> dict[str, Serdes]:
    """Return the serdes of written topics by their names in the topology; `BYTES` for a topic with several types."""
    serdes_of_topics: dict[str, Serdes] = {}
    for sink in (sink for sub in sub_topologies for sink in sub.sinks):
        if isinstance(sink.topic, str):
            serdes = (sink.key, sink.value)
            serdes_of_topics[sink.topic] = serdes if serdes_of_topics.get(sink.topic, serdes) == serdes else BYTES
    return serdes_of_topics


def last_of_each_key(rows: DataFrame, order: Collection[str]) -> DataFrame:
    """Return the last row of each key in the order of some columns. Rows without a key are dropped."""
    names = [name for name in rows.columns if name != "key"]
    last = F.max_by(F.struct(*names), F.struct(*order))
    return rows.where("key IS NOT NULL").groupBy("key").agg(last.alias("last")).select("key", "last.*")


def _in_arrow(packed: bytes) -> ArrowFunction:
    def typed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        serdes: Serdes = unpack(packed)
        for batch in batches:
            yield from _typed(serdes, pa.Table.from_batches([batch])).to_batches()

    return typed


def _typed(serdes: Serdes, rows: pa.Table) -> pa.Table:
    key, value = (rows[name].cast(pa.binary()).combine_chunks() for name in ("key", "value"))
    return pa.table(
        {
            "key": typed_column(serdes[0], key),
            "value": typed_column(serdes[1], value),
            "timestamp": rows["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(_TIME),
            "partition": rows["partition"].cast(pa.int32()),
            "headers": rows["headers"].cast(HEADERS_TYPE),
            DELETED: value.is_null(),
        }
    )

"""`DeltaSink`: the rows of a step in Delta tables, one per topic, typed where the type is known; executors write them.

A table takes each step once: Delta keeps the number of the last transaction of an application (`txnAppId`,
`txnVersion`) and ignores one that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kstreams.batch import HEADERS_TYPE
from kstreams.processor.topology.topology import SinkNode
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.runtime.spark.exchange.blocks import as_rows
from kstreams.runtime.spark.io.arrow_types import typed_column
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.settings import DeltaSettings
from kstreams.runtime.spark.storage.location import below
from kstreams.serdes import Serde

Serdes = tuple[Serde[Any] | None, Serde[Any] | None]
_TIME = pa.timestamp("us", "UTC")
_TRANSACTION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_DELETED = "_deleted"
"""Whether a row is a tombstone: not every null in a typed column is one."""


class DeltaSink:
    """Delta tables `<folder>/<topic>` with the columns key, value, timestamp, partition and headers.

    Parameters
    ----------
    settings : DeltaSettings
    program : Program
        Its sinks say which types the topics hold; a topic that several types are written to stays binary.
    application : str
        Names this history of steps.
    """

    def __init__(self, settings: DeltaSettings, program: Program, application: str) -> None:
        self._settings, self._application = settings, application
        self._serdes: dict[str, Serdes] = {}
        self._forms: dict[str, tuple[bytes, StructType]] = {}  # serdes as workers take them, and what they make
        for sub in program.sub_topologies:
            for sink in sub.sinks:
                self._learn(sink)

    def apply(self, step: int, blocks: DataFrame, topics: Iterable[str]) -> None:
        """Bring the rows of a step into the tables of their topics.

        Parameters
        ----------
        blocks : DataFrame
            The rows in blocks; read once for each topic.
        topics : iterable of str
            Those with rows.
        """
        for topic in sorted(topics):
            of_topic = as_rows(blocks.where(F.col("topic") == topic))
            write = self._merge if topic in self._settings.merged else self._append
            write(step, topic, of_topic)

    def _append(self, step: int, topic: str, rows: DataFrame) -> None:
        writer = self._typed(topic, rows).drop(_DELETED).write.format("delta").mode("append")
        writer = writer.option("mergeSchema", "true").partitionBy(*self._settings.partition_by)
        versioned = writer.option("txnAppId", self._application).option("txnVersion", step)
        versioned.save(self._path(topic))

    def _merge(self, step: int, topic: str, rows: DataFrame) -> None:
        """Let the last record of each key stand for it; one without a value deletes the key's row."""
        changes = self._typed(topic, _last_of_each_key(rows))
        session, names = changes.sparkSession, [name for name in changes.columns if name != _DELETED]
        empty = changes.limit(0).drop(_DELETED).write.format("delta").mode("ignore")
        empty.partitionBy(*self._settings.partition_by).save(self._path(topic))
        changes.createOrReplaceTempView("kstreams_changes")
        with _transaction(session, self._application, step):
            session.sql(
                f"MERGE INTO delta.`{self._path(topic)}` AS rows USING kstreams_changes AS changes "
                "ON rows.key = changes.key "
                f"WHEN MATCHED AND changes.{_DELETED} THEN DELETE "
                f"WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = changes.{name}' for name in names)} "
                f"WHEN NOT MATCHED AND NOT changes.{_DELETED} THEN INSERT ({', '.join(names)}) "
                f"VALUES ({', '.join(f'changes.{name}' for name in names)})"
            )

    def _path(self, topic: str) -> str:
        return below(self._settings.folder, topic)

    def _learn(self, sink: SinkNode) -> None:
        if isinstance(sink.topic, str):
            serdes = (sink.key, sink.value)
            known = self._serdes.setdefault(sink.topic, serdes)
            if known != serdes:
                self._serdes[sink.topic] = (None, None)

    def _typed(self, topic: str, rows: DataFrame) -> DataFrame:
        if topic not in self._forms:
            serdes = self._serdes.get(topic, (None, None))
            self._forms[topic] = pack(serdes), _schema(serdes)
        packed, schema = self._forms[topic]
        typed = rows.mapInArrow(_typed_in_arrow(packed), schema)
        by_day = "date" in self._settings.partition_by
        return typed.withColumn("date", F.to_date("timestamp")) if by_day else typed


def _last_of_each_key(rows: DataFrame) -> DataFrame:
    """The last row that the writer of each key wrote; rows without a key have no place in a table."""
    names = [name for name in rows.columns if name != "key"]
    last = F.max_by(F.struct(*names), F.struct("origin", "offset"))
    return rows.where("key IS NOT NULL").groupBy("key").agg(last.alias("last")).select("key", "last.*")


def _schema(serdes: Serdes) -> StructType:
    return from_arrow_schema(_typed_table(serdes, pa.table(_EMPTY)).schema, prefer_timestamp_ntz=False)


_EMPTY = {
    "key": pa.array([], pa.binary()),
    "value": pa.array([], pa.binary()),
    "timestamp": pa.array([], pa.int64()),
    "partition": pa.array([], pa.int32()),
    "headers": pa.array([], HEADERS_TYPE),
}


def _typed_in_arrow(packed: bytes) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def typed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        serdes: Serdes = unpack(packed)
        for batch in batches:
            yield from _typed_table(serdes, pa.Table.from_batches([batch])).to_batches()

    return typed


def _typed_table(serdes: Serdes, rows: pa.Table) -> pa.Table:
    key, value = (rows[name].cast(pa.binary()).combine_chunks() for name in ("key", "value"))
    return pa.table(
        {
            "key": typed_column(serdes[0], key),
            "value": typed_column(serdes[1], value),
            "timestamp": rows["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(_TIME),
            "partition": rows["partition"].cast(pa.int32()),
            "headers": rows["headers"].cast(HEADERS_TYPE),
            _DELETED: value.is_null(),
        }
    )


@contextmanager
def _transaction(session: SparkSession, application: str, step: int) -> Iterator[None]:
    """Number the statements that follow: what a table has taken under this number it takes no more."""
    for key, value in zip(_TRANSACTION, (application, str(step)), strict=True):
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in _TRANSACTION:
            session.conf.unset(key)

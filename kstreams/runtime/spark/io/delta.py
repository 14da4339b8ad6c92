"""`DeltaSink`: writes the rows of steps to Delta tables, one per topic, with typed columns if the types are known.

A table takes each step exactly once: Delta stores the number of the last transaction of an application (`txnAppId`,
`txnVersion`) and ignores a transaction that it already has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.runtime.spark.exchange.blocks import as_rows
from kstreams.runtime.spark.io.typed_rows import BYTES, DELETED, TypedRows, last_of_each_key, serdes_written
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.settings import DeltaSettings
from kstreams.runtime.spark.storage.location import below

_TRANSACTION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"


class DeltaSink:
    """Delta tables `<folder>/<topic>` with the columns key, value, timestamp, partition and headers.

    Parameters
    ----------
    settings : DeltaSettings
    program : Program
        Its sinks have the types of topics. The columns of a topic with several types are binary.
    application : str
        The application id of Delta transactions, which identifies this history of steps.
    """

    def __init__(self, settings: DeltaSettings, program: Program, application: str) -> None:
        self._settings = settings
        self._application = application
        self._routes = program.routes
        self._serdes = serdes_written(program.sub_topologies)
        self._typed_rows: dict[str, TypedRows] = {}

    def apply(self, step: int, blocks: DataFrame, topics: Iterable[str]) -> None:
        """Write the rows of a step to the tables of their topics.

        Parameters
        ----------
        blocks : DataFrame
            The rows in blocks, which are read once for each topic.
        topics : iterable of str
            The topics with rows.
        """
        for topic in filter(self._routes.to_delta, sorted(topics)):
            of_topic = as_rows(blocks.where(F.col("topic") == topic))
            write = self._merge if topic in self._settings.merged else self._append
            write(step, topic, of_topic)

    def _append(self, step: int, topic: str, rows: DataFrame) -> None:
        writer = self._typed(topic, rows).drop(DELETED).write.format("delta").mode("append")
        writer = writer.option("mergeSchema", "true").partitionBy(*self._settings.partition_by)
        versioned = writer.option("txnAppId", self._application).option("txnVersion", step)
        versioned.save(self._path(topic))

    def _merge(self, step: int, topic: str, rows: DataFrame) -> None:
        """Update the row of each key to the key's last record; a tombstone deletes the row."""
        changes = self._typed(topic, last_of_each_key(rows, ("origin", "offset")))
        session = changes.sparkSession
        names = [name for name in changes.columns if name != DELETED]
        empty = changes.limit(0).drop(DELETED).write.format("delta").mode("ignore")
        empty.partitionBy(*self._settings.partition_by).save(self._path(topic))
        changes.createOrReplaceTempView("kstreams_changes")
        with _transaction(session, self._application, step):
            session.sql(
                f"MERGE INTO delta.`{self._path(topic)}` AS rows USING kstreams_changes AS changes "
                "ON rows.key = changes.key "
                f"WHEN MATCHED AND changes.{DELETED} THEN DELETE "
                f"WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = changes.{name}' for name in names)} "
                f"WHEN NOT MATCHED AND NOT changes.{DELETED} THEN INSERT ({', '.join(names)}) "
                f"VALUES ({', '.join(f'changes.{name}' for name in names)})"
            )

    def _path(self, topic: str) -> str:
        return below(self._settings.folder, topic)

    def _typed(self, topic: str, rows: DataFrame) -> DataFrame:
        if topic not in self._typed_rows:
            self._typed_rows[topic] = TypedRows(self._serdes.get(topic, BYTES))
        typed = self._typed_rows[topic].of(rows)
        by_day = "date" in self._settings.partition_by
        return typed.withColumn("date", F.to_date("timestamp")) if by_day else typed


@contextmanager
def _transaction(session: SparkSession, application: str, step: int) -> Iterator[None]:
    """Give the statements of the block a transaction number, which a table applies only once."""
    for key, value in zip(_TRANSACTION, (application, str(step)), strict=True):
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in _TRANSACTION:
            session.conf.unset(key)

"""`EndOfInput`: a row in a far future that closes all windows of a query whose input has ended."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.runtime.spark.exchange.rows import FAR_FUTURE_MS
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage

_BEGIN = "_begin"
"""An object that creates the folder. Spark's source of files ignores names that begin so."""
_END = "end.json"


class EndOfInput:
    """The end of the input of one query: a row that is written when all other input is processed.

    Spark's source of files reads it, since a query has the same sources in all runs.

    Parameters
    ----------
    session : SparkSession
    storage : CheckpointStorage
    folder : str
        The folder in the checkpoint.
    """

    def __init__(self, session: SparkSession, storage: CheckpointStorage, folder: str) -> None:
        self._session = session
        self._storage = storage
        self._folder = folder

    @property
    def is_reached(self) -> bool:
        """True if the row is written. Whatever comes later would be late."""
        return _END in self._storage.names(self._folder)

    def reach(self) -> None:
        """Write the row."""
        self._storage.write(f"{self._folder}/{_END}", json.dumps({"ms": FAR_FUTURE_MS}).encode())

    def row(self) -> DataFrame:
        """Return the row, once it is written, as a stream of records without key and value."""
        self._storage.write(f"{self._folder}/{_BEGIN}", b"")
        rows = self._session.readStream.schema("ms bigint").json(self._storage.for_spark(self._folder))
        nothing = F.lit(None).cast("binary")
        return rows.select(nothing.alias("key"), nothing.alias("value"), F.timestamp_millis("ms").alias("timestamp"))

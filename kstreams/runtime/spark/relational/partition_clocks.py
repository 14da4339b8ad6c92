"""`PartitionClocks`: rows that move the watermark of a partition which has no records to move it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.exchange.rows import FAR_FUTURE_MS
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage

_BEGIN = "_begin"
"""An object that creates the folder. Spark's source of files ignores names that begin so."""
_ENDED = "_ended"
_OF_TIMES = ".json"
_TIMES = "_times"


class PartitionClocks:
    """The clocks of the partitions that one query reads, of which Spark takes the least watermark.

    Spark's source of files reads the times. Their rows have no key and no value, and a microsecond more than the times
    of records, which have none.

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

    def rows(self, source: TopicPartition) -> DataFrame:
        """Return the rows of a clock as a stream of records."""
        is_of_source = (F.col("topic") == source.topic) & (F.col("partition") == source.partition)
        times = self._times.where(is_of_source)
        nothing = F.lit(None).cast("binary")
        time_of_clock = F.timestamp_micros(F.col("ms") * 1_000 + 1)
        columns = {"key": nothing, "value": nothing, "timestamp": time_of_clock, "offset": F.lit(None).cast("bigint")}
        return times.withColumns(columns).select("key", "value", "timestamp", "topic", "partition", "offset")

    @cached_property
    def _times(self) -> DataFrame:
        """The times of all clocks as a stream."""
        self._storage.write(f"{self._folder}/{_BEGIN}", b"")
        reader = self._session.readStream.schema("topic string, partition int, ms bigint")
        return reader.json(self._storage.for_spark(self._folder))

    def move(self, times_ms: Mapping[TopicPartition, int]) -> None:
        """Set the clocks of some partitions to these times."""
        rows = ({"topic": at.topic, "partition": at.partition, "ms": ms} for at, ms in times_ms.items())
        self._storage.write(f"{self._folder}/{time.time_ns()}{_OF_TIMES}", "\n".join(map(json.dumps, rows)).encode())

    def delete_before(self, time_ns: int) -> None:
        """Delete the times that were written before a moment, which no batch reads any more."""
        names = [name for name in self._storage.names(self._folder) if name.endswith(_OF_TIMES)]
        old = [f"{self._folder}/{name}" for name in names if int(name.removesuffix(_OF_TIMES)) < time_ns]
        if old:
            self._storage.delete(old)

    @property
    def is_at_the_end(self) -> bool:
        """True if all windows were closed. Whatever comes later would be late."""
        return _ENDED in self._storage.names(self._folder)

    def end(self, partitions: Mapping[TopicPartition, object]) -> None:
        """Move all clocks past all windows, since all other input is processed."""
        self.move(dict.fromkeys(partitions, FAR_FUTURE_MS))
        self._storage.write(f"{self._folder}/{_ENDED}", b"")

    def stream_times(self) -> dict[TopicPartition, int]:
        """Return the greatest times of records that an earlier run has saved."""
        if _TIMES not in self._storage.names(self._folder):
            return {}
        rows = json.loads(self._storage.read(f"{self._folder}/{_TIMES}"))
        return {TopicPartition(topic, partition): ms for topic, partition, ms in rows}

    def save(self, stream_times: Mapping[TopicPartition, int]) -> None:
        """Save the greatest times of records, which Spark does not keep."""
        rows = [(at.topic, at.partition, ms) for at, ms in stream_times.items()]
        self._storage.write(f"{self._folder}/{_TIMES}", json.dumps(rows).encode())


def is_record() -> Column:
    """Return the condition that a row is no row of a clock.

    Spark does not move it before the watermark, since it reads the time.
    """
    return F.unix_micros("timestamp") % 1_000 == 0

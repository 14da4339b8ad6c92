"""`RowCollector`: what a task's sinks write goes to the log at once, or to other tasks of the step as Spark's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.errors import LogError
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.processor.task.collector import BY_KEY
from kstreams.runtime.spark.io.output_topics import RowWriter
from kstreams.runtime.spark.io.rows import ARROW_OUT_SCHEMA, Longs
from kstreams.runtime.spark.program import Program


class RowCollector:
    """The collector of one task in one step.

    Parameters
    ----------
    program : Program
        Says how many partitions a topic has, and which rows go where.
    writer : RowWriter
        Writes to the user's topics.
    sub_topology, partition : int
        Name the task in the rows; records without a key go to its own partition, as on the native engine.
    round_number : int
        The round of the step: rows of a later one have greater numbers.
    """

    def __init__(
        self, program: Program, writer: RowWriter, sub_topology: int, partition: int, round_number: int = 0
    ) -> None:
        self._program, self._routes, self._writer, self._own = program, program.routes, writer, partition
        self._origin = sub_topology << 20 | partition
        self._first = round_number << 40
        self._sent: Counter[str] = Counter()
        self._rows: list[pa.RecordBatch] = []

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has, or will have."""
        return self._program.partitions_of(topic)

    def refused(
        self, topic: str, keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None
    ) -> Mapping[int, LogError]:
        """The rows that a topic of the user's would never take; repartition topics take all."""
        if not self._routes.to_log(topic):
            return {}
        numbers = np.arange(len(keys), dtype=np.int64)
        return self._writer.refused(Batch(TopicPartition(topic, 0), numbers, keys, values, timestamps, headers))

    def merges(self, topic: str) -> bool:
        """Whether the rows of several tasks meet in a shuffle: what goes to the log alone is in no order among them."""
        return topic in self._routes.internal

    def send(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        timestamps: pa.Array,
        headers: pa.Array | None,
        partitions: np.ndarray[Any, Any] | None,
        stream_times: pa.Array | None = None,
    ) -> None:
        """Take rows of one topic."""
        chosen = self._chosen(topic, keys, partitions)
        if self._routes.to_spark(topic):
            times = timestamps if stream_times is None else stream_times
            self._keep(topic, keys, values, timestamps, headers, chosen, times)
        self._sent[topic] += len(keys)
        if self._routes.to_log(topic):
            for batch, _ in split_by_partition(topic, chosen, keys, values, timestamps, headers):
                self._writer.send(batch)

    def _keep(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        timestamps: pa.Array,
        headers: pa.Array | None,
        partitions: Longs,
        stream_times: pa.Array,
    ) -> None:
        """Keep rows for Spark, numbered in the order in which they come."""
        first, count = self._first + self._sent[topic], len(keys)
        columns = [
            pa.repeat(pa.scalar(topic, pa.string()), count),
            pa.array(partitions, pa.int32()),
            pa.array(np.arange(first, first + count, dtype=np.int64)),
            timestamps,
            keys,
            values,
            pa.nulls(count, HEADERS_TYPE) if headers is None else headers,
            pa.repeat(pa.scalar(self._origin, pa.int64()), count),
            stream_times,
        ]
        self._rows.append(pa.RecordBatch.from_arrays(columns, schema=ARROW_OUT_SCHEMA))

    @property
    def written(self) -> dict[str, int]:
        """How many rows went to each topic of the user's so far."""
        return {topic: count for topic, count in self._sent.items() if self._routes.to_log(topic)}

    @property
    def handed_over(self) -> list[str]:
        """The topics whose rows other tasks of the step read."""
        return sorted(self._routes.internal & self._sent.keys())

    def drain(self) -> list[pa.RecordBatch]:
        """The rows since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def _chosen(self, topic: str, keys: pa.Array, given: np.ndarray[Any, Any] | None) -> Longs:
        count = self.partitions(topic)
        by_key = partitions_of(keys, count)
        chosen = by_key if given is None else np.where(given == BY_KEY, by_key, given)
        return np.where(chosen < 0, self._own % count, chosen)

"""`RowCollector`: turns what a task's sinks write into Spark's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.batch import HEADERS_TYPE
from kstreams.errors import LogError
from kstreams.log.partitioning import partitions_of
from kstreams.processor.task.collector import BY_KEY
from kstreams.runtime.spark.io.rows import ARROW_OUT_SCHEMA, Longs


class RowCollector:
    """The collector of one task in one step.

    Parameters
    ----------
    partitions : mapping of str to int
        Number of partitions by topic; a topic that is not known yet gets `default`.
    sub_topology, partition : int
        Name the task in the rows; records without a key go to its own partition, as on the native engine.
    round_number : int
        The round of the step: rows of a later one have greater numbers.
    """

    def __init__(
        self, partitions: Mapping[str, int], default: int, sub_topology: int, partition: int, round_number: int = 0
    ) -> None:
        self._partitions, self._default, self._own = partitions, default, partition
        self._origin = sub_topology << 20 | partition
        self._first = round_number << 40
        self._written: Counter[str] = Counter()
        self._rows: list[pa.RecordBatch] = []

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has, or will have."""
        return self._partitions.get(topic, self._default)

    def refused(self, topic: str, *columns: pa.Array | None) -> dict[int, LogError]:
        """None here: the driver writes the topics, and a record that one of them refuses ends the run."""
        return {}

    def merges(self, topic: str) -> bool:
        """Always: the rows of several tasks meet in a shuffle, or at the driver."""
        return True

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
        """Keep rows of one topic, numbered in the order in which they come."""
        first, count = self._first + self._written[topic], len(keys)
        self._written[topic] += count
        numbers = np.arange(first, first + count, dtype=np.int64)
        columns = [
            pa.repeat(pa.scalar(topic, pa.string()), count),
            pa.array(self._chosen(topic, keys, partitions), pa.int32()),
            pa.array(numbers),
            timestamps,
            keys,
            values,
            pa.nulls(count, HEADERS_TYPE) if headers is None else headers,
            pa.repeat(pa.scalar(self._origin, pa.int64()), count),
            timestamps if stream_times is None else stream_times,
        ]
        self._rows.append(pa.RecordBatch.from_arrays(columns, schema=ARROW_OUT_SCHEMA))

    @property
    def topics(self) -> frozenset[str]:
        """The topics that rows were written to so far."""
        return frozenset(self._written)

    def drain(self) -> list[pa.RecordBatch]:
        """The rows since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def _chosen(self, topic: str, keys: pa.Array, given: np.ndarray[Any, Any] | None) -> Longs:
        count = self.partitions(topic)
        by_key = partitions_of(keys, count)
        chosen = by_key if given is None else np.where(given == BY_KEY, by_key, given)
        return np.where(chosen < 0, self._own % count, chosen)

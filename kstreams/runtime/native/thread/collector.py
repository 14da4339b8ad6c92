"""`TaskCollector`: takes what a task's sinks write and gives each row its partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.batch import Batch, TopicPartition
from kstreams.errors import LogError
from kstreams.log.partitioning import partitions_of
from kstreams.runtime.native.thread.encoded_rows import EncodedRows
from kstreams.runtime.native.thread.sink_buffer import SinkBuffer


class TaskCollector:
    """The `Collector` of one task.

    A null key determines no partition: such records go to the task's own, which keeps their order and puts them in the
    same place when a run is repeated (Kafka's producer would scatter them).
    """

    def __init__(self, sink_buffer: SinkBuffer, partition: int) -> None:
        self._sink_buffer, self._own = sink_buffer, partition

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self._sink_buffer.partitions(topic)

    def merges(self, topic: str) -> bool:
        """Whether what several tasks write to a topic is put in order of their stream times."""
        return self._sink_buffer.merges(topic)

    def refused(
        self, topic: str, keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None
    ) -> dict[int, LogError]:
        """The rows that the topic refuses for good, with the error of each."""
        offsets = np.arange(len(keys), dtype=np.int64)
        return self._sink_buffer.refused(
            Batch(TopicPartition(topic, self._own), offsets, keys, values, timestamps, headers)
        )

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
        """Take encoded rows of one topic, in order."""
        count = self._sink_buffer.partitions(topic)
        if partitions is None:
            chosen = partitions_of(keys, count)
        else:
            chosen = np.where(partitions >= 0, partitions, partitions_of(keys, count))
        chosen = np.where(chosen < 0, self._own % count, chosen)
        self._sink_buffer.add(topic, EncodedRows(keys, values, timestamps, headers, chosen, stream_times), self._own)

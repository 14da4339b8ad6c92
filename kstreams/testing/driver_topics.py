"""`DriverTopics`: the topics of a test driver. It keeps what is written, and feeds back what the topology reads."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.batch import Batch, Row, TopicPartition
from kstreams.errors import LogError


class DriverTopics:
    """The `Collector` of a test driver; each topic has one partition.

    Parameters
    ----------
    is_input : callable
        Whether the topology reads a topic.
    enqueue : callable
        Takes the batches of topics that are read.
    """

    def __init__(self, is_input: Callable[[str], bool], enqueue: Callable[[Batch], None]) -> None:
        self._is_input, self._enqueue = is_input, enqueue
        self._offsets: Counter[str] = Counter()
        self.queues: dict[str, deque[Row]] = defaultdict(deque)
        self.written: set[str] = set()

    def send(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        timestamps: pa.Array,
        headers: pa.Array | None,
        partitions: np.ndarray[Any, Any] | None = None,
        stream_times: pa.Array | None = None,
    ) -> None:
        """Append to a topic."""
        self.written.add(topic)
        first = self._offsets[topic]
        offsets = np.arange(first, first + len(keys), dtype=np.int64)
        batch = Batch(TopicPartition(topic, 0), offsets, keys, values, timestamps, headers)
        self._offsets[topic] += len(batch)
        self.queues[topic].extend(batch.rows())
        if self._is_input(topic):
            self._enqueue(batch)

    def partitions(self, topic: str) -> int:
        """One."""
        return 1

    def refused(self, topic: str, *columns: pa.Array | None) -> dict[int, LogError]:
        """None: these topics take everything."""
        return {}

    def merges(self, topic: str) -> bool:
        """Never: one task writes."""
        return False

    def batch_of(self, topic: str, rows: list[Row]) -> Batch:
        """Rows that a test writes to a topic, at the offsets that follow."""
        batch = Batch.of_rows(TopicPartition(topic, 0), rows, self._offsets[topic])
        self._offsets[topic] += len(rows)
        return batch

"""From the sinks of tasks to the producer of their thread: rows are gathered, partitioned as columns, and sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.batch import HEADERS_TYPE
from kstreams.log.api import OnDelivery, Producer
from kstreams.log.partitioning import partitions_of, split_by_partition

_MOST_ROWS = 65_536  # gathered before a topic is sent in the middle of a round

Piece = tuple[pa.Array, pa.Array, pa.Array, pa.Array | None, np.ndarray[Any, Any]]


class Outbox:
    """What the tasks of one thread wrote since the last `flush`, in order per topic.

    Parameters
    ----------
    producer : Producer
    begin : callable
        Called before anything is sent: opens a transaction where one is needed.
    count_partitions : callable
        How many partitions a topic has; raises UnknownTopicError.
    """

    def __init__(self, producer: Producer, begin: Callable[[], None], count_partitions: Callable[[str], int]) -> None:
        self._producer, self._begin, self._count = producer, begin, count_partitions
        self._pieces: dict[str, list[Piece]] = {}
        self._rows: Counter[str] = Counter()
        self._partitions: dict[str, int] = {}
        self.records_out: Counter[str] = Counter()

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has, asked once."""
        if topic not in self._partitions:
            self._partitions[topic] = self._count(topic)
        return self._partitions[topic]

    def add(self, topic: str, piece: Piece) -> None:
        """Take rows of one topic with the partition of each."""
        self._pieces.setdefault(topic, []).append(piece)
        self._rows[topic] += len(piece[0])
        if self._rows[topic] >= _MOST_ROWS:
            self._send(topic)

    def flush(self, on_delivery: OnDelivery | None = None) -> None:
        """Hand everything to the producer."""
        for topic in list(self._pieces):
            self._send(topic, on_delivery)

    def _send(self, topic: str, on_delivery: OnDelivery | None = None) -> None:
        pieces = self._pieces.pop(topic)
        self.records_out[topic] += self._rows.pop(topic)
        keys, values, timestamps, headers, partitions = pieces[0] if len(pieces) == 1 else _joined(pieces)
        self._begin()
        for batch, _ in split_by_partition(topic, partitions, keys, values, timestamps, headers):
            self._producer.send_batch(batch, on_delivery)


class TaskCollector:
    """The `Collector` of one task.

    A null key says nothing about the partition: such records go to the task's own, so that their order is kept and
    a run that is repeated puts them in the same place (Kafka's producer would scatter them).
    """

    def __init__(self, outbox: Outbox, partition: int) -> None:
        self._outbox, self._own = outbox, partition

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self._outbox.partitions(topic)

    def send(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        timestamps: pa.Array,
        headers: pa.Array | None,
        partitions: np.ndarray[Any, Any] | None,
    ) -> None:
        """Take encoded rows of one topic, in order."""
        count = self._outbox.partitions(topic)
        if partitions is None:
            chosen = partitions_of(keys, count)
        else:
            chosen = np.where(partitions >= 0, partitions, partitions_of(keys, count))
        chosen = np.where(chosen < 0, self._own % count, chosen)
        self._outbox.add(topic, (keys, values, timestamps, headers, chosen))


def _joined(pieces: list[Piece]) -> Piece:
    keys, values, timestamps, headers, partitions = zip(*pieces, strict=True)
    joined_headers = None
    if any(column is not None for column in headers):
        filled = [
            pa.nulls(len(key), HEADERS_TYPE) if column is None else column
            for key, column in zip(keys, headers, strict=True)
        ]
        joined_headers = pa.concat_arrays(filled)
    columns = (pa.concat_arrays(column) for column in (keys, values, timestamps))
    return (*columns, joined_headers, np.concatenate(partitions))

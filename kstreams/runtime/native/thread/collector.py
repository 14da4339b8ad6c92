"""From the sinks of tasks to the producer of their thread: rows are gathered, partitioned as columns, and sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.batch import Batch, TopicPartition
from kstreams.errors import LogError
from kstreams.log.api import Producer
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.runtime.native.thread.send_retry import SendRetry
from kstreams.runtime.native.thread.time_merge import EncodedRows, TimeMerge, joined

_MOST_ROWS = 65_536  # gathered before a topic is sent in the middle of a round
_MOST_BYTES = 4 << 20  # of all topics
_WRITTEN_TIME = "written_time:"


class SinkBuffer:
    """What the tasks of one thread wrote since the last `flush`, in order per topic.

    Parameters
    ----------
    producer : Producer
    begin : callable
        Called before anything is sent: opens a transaction where one is needed.
    count_partitions : callable
        How many partitions a topic has; raises UnknownTopicError.
    retry : SendRetry
        For topics that do not take records for the time being.
    merged : collection of str
        Topics in which what several tasks wrote is put in order of time; `flush_merged` sends them.
    internal : collection of str
        Repartition topics: `records_out` leaves them out.
    """

    def __init__(
        self,
        producer: Producer,
        begin: Callable[[], None],
        count_partitions: Callable[[str], int],
        retry: SendRetry,
        merged: Collection[str] = (),
        internal: Collection[str] = (),
    ) -> None:
        self._producer, self._begin, self._count, self._retry = producer, begin, count_partitions, retry
        self._merged = {topic: TimeMerge() for topic in merged}
        self._internal = frozenset(internal)
        self._pieces: dict[str, list[EncodedRows]] = {}
        self._rows: Counter[str] = Counter()
        self._bytes = 0
        self._partitions: dict[str, int] = {}
        self.records_out: Counter[str] = Counter()

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has, asked once."""
        if topic not in self._partitions:
            self._partitions[topic] = self._count(topic)
        return self._partitions[topic]

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """The rows that their topic would never take, and why."""
        return self._producer.refused(batch)

    def add(self, topic: str, piece: EncodedRows, writer: int) -> None:
        """Take rows of one topic, with the partition of each, from the task of partition `writer`."""
        if topic in self._merged:
            self._merged[topic].add(piece, writer)
            return
        self._pieces.setdefault(topic, []).append(piece)
        self._rows[topic] += len(piece.keys)
        self._bytes += piece.keys.nbytes + piece.values.nbytes
        if self._bytes >= _MOST_BYTES:
            self.flush()
        elif self._rows[topic] >= _MOST_ROWS:
            self._send(topic, self._pieces.pop(topic))

    def flush(self) -> None:
        """Hand everything to the producer but what is to be merged."""
        self._bytes = 0
        self.flush_topics(list(self._pieces))

    def flush_topics(self, topics: Collection[str]) -> None:
        """The same for some topics."""
        for topic in topics:
            if pieces := self._pieces.pop(topic, None):
                self._send(topic, pieces)

    def flush_merged(self) -> None:
        """Hand to the producer what was to be merged: all tasks have come equally far in time."""
        for topic, merge in self._merged.items():
            if pieces := merge.take():
                self._send(topic, pieces)

    def written_times(self, writer: int) -> dict[str, int]:
        """How far in time the task of partition `writer` has come in merged topics: to be kept with each commit."""
        times = {topic: merge.latest.get(writer) for topic, merge in self._merged.items()}
        return {f"{_WRITTEN_TIME}{topic}": time for topic, time in times.items() if time is not None}

    def restore_written_times(self, writer: int, metadata: Mapping[str, int]) -> None:
        """Go on from the task metadata of the last commit, as if the thread had never ended."""
        for topic, merge in self._merged.items():
            if (time := metadata.get(f"{_WRITTEN_TIME}{topic}")) is not None:
                merge.latest[writer] = time

    def _send(self, topic: str, pieces: list[EncodedRows]) -> None:
        keys, values, timestamps, headers, partitions = joined(pieces)
        self._rows.pop(topic, None)
        if topic not in self._internal:
            self.records_out[topic] += len(keys)
        self._begin()
        for batch, _ in split_by_partition(topic, partitions, keys, values, timestamps, headers):
            self._retry.send(self._producer, batch)


class TaskCollector:
    """The `Collector` of one task.

    A null key says nothing about the partition: such records go to the task's own, so that their order is kept and
    a run that is repeated puts them in the same place (Kafka's producer would scatter them).
    """

    def __init__(self, sink_buffer: SinkBuffer, partition: int) -> None:
        self._sink_buffer, self._own = sink_buffer, partition

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self._sink_buffer.partitions(topic)

    def refused(
        self, topic: str, keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None
    ) -> dict[int, LogError]:
        """The rows that the topic would never take, and why."""
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
    ) -> None:
        """Take encoded rows of one topic, in order."""
        count = self._sink_buffer.partitions(topic)
        if partitions is None:
            chosen = partitions_of(keys, count)
        else:
            chosen = np.where(partitions >= 0, partitions, partitions_of(keys, count))
        chosen = np.where(chosen < 0, self._own % count, chosen)
        self._sink_buffer.add(topic, EncodedRows(keys, values, timestamps, headers, chosen), self._own)

"""`TaskCollector`: takes the output of one task for the sink buffer of its thread."""

from __future__ import annotations

from kstreams.errors import LogError
from kstreams.kernel.clock import Clock
from kstreams.processor.context.encoded_rows import EncodedRows, PartitionedRows, Partitions
from kstreams.runtime.native.metrics.record_ages import RecordAges
from kstreams.runtime.native.thread.sink_buffer import SinkBuffer


class TaskCollector:
    """The `Collector` of one task."""

    def __init__(self, sink_buffer: SinkBuffer, partition: int, ages: RecordAges, clock: Clock) -> None:
        self._sink_buffer = sink_buffer
        self._partition = partition
        self._ages = ages
        self._clock = clock

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        return self._sink_buffer.partitions(topic)

    def merges(self, topic: str) -> bool:
        """Return whether the rows that several tasks write to a topic are sorted by stream time."""
        return self._sink_buffer.merges(topic)

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, LogError]:
        """Return the rows that the topic never takes, with the reason."""
        return self._sink_buffer.refused(rows.as_batch(topic))

    def send(self, topic: str, rows: EncodedRows, partitions: Partitions) -> None:
        """Take encoded rows of one topic, in order, with the partition of each row."""
        self._ages.seen(topic, rows.timestamps, self._clock.wall_ms())
        self._sink_buffer.add(topic, PartitionedRows(rows, partitions), self._partition)

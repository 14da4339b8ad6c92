"""`TaskCollector`: takes what a task's sinks write and gives each row its partition."""

from __future__ import annotations

from kstreams.errors import LogError
from kstreams.kernel.clock import Clock
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.runtime.native.metrics.record_ages import RecordAges
from kstreams.runtime.native.thread.sink_buffer import SinkBuffer


class TaskCollector:
    """The `Collector` of one task.

    A null key determines no partition: such records go to the task's own, which keeps their order and puts them in the
    same place when a run is repeated (Kafka's producer would scatter them).
    """

    def __init__(self, sink_buffer: SinkBuffer, partition: int, ages: RecordAges, clock: Clock) -> None:
        self._sink_buffer = sink_buffer
        self._own = partition
        self._ages = ages
        self._clock = clock

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self._sink_buffer.partitions(topic)

    def merges(self, topic: str) -> bool:
        """Whether what several tasks write to a topic is put in order of their stream times."""
        return self._sink_buffer.merges(topic)

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, LogError]:
        """The rows that the topic refuses for good, with the error of each."""
        return self._sink_buffer.refused(rows.as_batch(topic))

    def send(self, topic: str, rows: EncodedRows) -> None:
        """Take encoded rows of one topic, in order."""
        self._ages.seen(topic, rows.timestamps, self._clock.wall_ms())
        chosen = rows.chosen(self._sink_buffer.partitions(topic), self._own)
        self._sink_buffer.add(topic, rows._replace(partitions=chosen), self._own)

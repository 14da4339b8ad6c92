"""`SinkBuffer`: the output of a stream thread's tasks, buffered by topic until it is sent to the producer.

Each task writes through its `TaskCollector`. `TimeMerge` sorts the rows that several tasks write to a topic.
`SendRetry` sends a batch again if the producer has no room.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.errors import BufferFullError, LogError
from kstreams.kernel.batch import Batch
from kstreams.kernel.clock import Clock
from kstreams.log.api import OnDelivery, Producer
from kstreams.log.partitioning import split_by_partition
from kstreams.metrics.sensors import RecordAges
from kstreams.processor.api.error_handlers import ErrorHandlerContext, Result, handler_of
from kstreams.processor.context.encoded_rows import EncodedRows, PartitionedRows, Partitions, merged_parts
from kstreams.processor.topology.record_order import RecordOrder
from kstreams.record import ProducerRecord
from kstreams.runtime.native.time_alignment.row_tags import tagged, timed
from kstreams.runtime.native.time_alignment.writer_slices import WriterSlices

logger = logging.getLogger(__name__)
_MAX_ROWS = 65_536  # buffered rows of a topic, above which its rows are sent in the middle of a round
_MAX_BYTES = 4 << 20  # buffered bytes of all topics, above which all rows are sent


class SinkBuffer:
    """The output of one thread's tasks since the last `flush`, in order per topic.

    Parameters
    ----------
    producer : Producer
    begin : callable
        Called before records are sent; opens a transaction where one is needed.
    count_partitions : callable
        Returns the number of partitions of a topic; raises UnknownTopicError.
    retry : SendRetry
        Sends batches again if the producer has no room.
    slices : WriterSlices
        Says which topics are sorted by stream time, here by `flush_merged` or by their readers.
    internal : collection of str
        Repartition topics, counted in `repartitioned`; all others are counted in `records_out`.
    """

    def __init__(
        self,
        producer: Producer,
        begin: Callable[[], None],
        count_partitions: Callable[[str], int],
        retry: SendRetry,
        slices: WriterSlices,
        internal: Collection[str] = (),
    ) -> None:
        self._producer = producer
        self._begin = begin
        self._count_partitions = count_partitions
        self._retry = retry
        self._merged: dict[str, TimeMerge] = {}
        self._internal = frozenset(internal)
        self._slices = slices
        self._parts: dict[str, list[PartitionedRows]] = {}
        self._rows: Counter[str] = Counter()
        self._bytes = 0
        self._partitions: dict[str, int] = {}
        self.records_out: Counter[str] = Counter()
        self.repartitioned: Counter[str] = Counter()
        self.bytes_out: Counter[str] = Counter()

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic, which is read once."""
        if topic not in self._partitions:
            self._partitions[topic] = self._count_partitions(topic)
        return self._partitions[topic]

    def merges(self, topic: str) -> bool:
        """Return whether rows of a topic need their stream times, to be sorted here or by their readers."""
        return topic in self._slices.topics

    @property
    def order(self) -> RecordOrder:
        """The topics whose rows carry ranks."""
        return self._slices.order

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """Return the rows that their topic never takes, with the reason."""
        return self._producer.refused(batch)

    def add(self, topic: str, part: PartitionedRows, writer: int) -> None:
        """Add rows of one topic from the task of partition `writer`."""
        rows = part.rows
        size = rows.keys.nbytes + rows.values.nbytes
        self.bytes_out[topic] += size
        if self._slices.merges(topic):
            self._merged.setdefault(topic, TimeMerge()).add(part, writer)
            return
        if (number := self._slices.number_of(topic)) is not None:
            part = part._replace(rows=tagged(rows, number, writer))
        self._parts.setdefault(topic, []).append(part)
        self._rows[topic] += len(rows.keys)
        self._bytes += size
        if self._bytes >= _MAX_BYTES:
            self.flush()
        elif self._rows[topic] >= _MAX_ROWS:
            self._send(topic, self._parts.pop(topic))

    def flush(self) -> None:
        """Send all rows except those that are sorted by stream time here."""
        self._bytes = 0
        self.flush_topics(list(self._parts))

    def flush_topics(self, topics: Collection[str]) -> None:
        """Send the rows of these topics, except those that are sorted by stream time here."""
        for topic in topics:
            if parts := self._parts.pop(topic, None):
                self._send(topic, parts)

    def flush_merged(self) -> None:
        """Send the rows that are sorted by stream time here; all tasks must have reached the same time."""
        for topic, merge in self._merged.items():
            if parts := merge.take():
                self._send(topic, parts)

    def _send(self, topic: str, parts: list[PartitionedRows]) -> None:
        rows, partitions = merged_parts(parts)
        if topic in self._slices.timed:
            rows = timed(rows)
        self._rows.pop(topic, None)
        records = self.repartitioned if topic in self._internal else self.records_out
        records[topic] += len(partitions)
        self._begin()
        for batch, _ in split_by_partition(topic, partitions, rows.keys, rows.values, rows.timestamps, rows.headers):
            self._retry.send(self._producer, batch)


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

    def has_ranks(self, topic: str) -> bool:
        """Return whether rows of a topic that merges carry the ranks of their source records."""
        return topic in self._sink_buffer.order.topics

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, LogError]:
        """Return the rows that the topic never takes, with the reason."""
        return self._sink_buffer.refused(rows.as_batch(topic))

    def send(self, topic: str, rows: EncodedRows, partitions: Partitions) -> None:
        """Take encoded rows of one topic, in order, with the partition of each row."""
        self._ages.record(topic, rows.timestamps, self._clock.wall_ms())
        self._sink_buffer.add(topic, PartitionedRows(rows, partitions), self._partition)


class SendRetry:
    """The retries of one thread.

    Parameters
    ----------
    production_handler : object
        The setting `production.exception.handler`; its handler says whether to retry. It cannot drop a batch here: a
        batch without room is sent again, or ends the thread.
    timeout_ms : int
        Time after which a batch is not sent again.
    clock : Clock
    """

    def __init__(self, production_handler: Any, timeout_ms: int, clock: Clock) -> None:
        self._handler = handler_of(production_handler, None)
        self._timeout_ms = timeout_ms
        self._clock = clock

    def send(self, producer: Producer, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Send a batch; each attempt takes up to the producer's `max.block.ms`.

        Raises
        ------
        BufferFullError
            If the producer has no room for the batch, and the batch is not sent again.
        """
        started_ms = self._clock.uptime_ms()
        while True:
            try:
                return producer.send_batch(batch, on_delivery)
            except BufferFullError as error:
                if self._clock.uptime_ms() - started_ms >= self._timeout_ms or not self._wants_retry(batch, error):
                    raise
                logger.warning("%s takes no records for the time being, sending again: %s", batch.source, error)

    def _wants_retry(self, batch: Batch, error: BufferFullError) -> bool:
        first: Any = next(batch.rows())
        record = ProducerRecord(batch.source.topic, first.key, first.value, first.timestamp, first.headers)
        return self._handler(ErrorHandlerContext(), record, error).result is Result.RETRY


class TimeMerge:
    """The rows that several tasks wrote to one topic, sorted by the stream time of each task when it wrote the row.

    Rows with equal stream times are in the order of their ranks, then of their tasks' partitions. The rows of one task
    keep their order.

    Examples
    --------
    >>> merge, column = TimeMerge(), lambda *values: pa.array(values)
    >>> for writer, times, reached in ((0, (1, 5, 2), (1, 5, 5)), (1, (3, 4, 9), (3, 4, 9))):
    ...     rows = EncodedRows(column(*times), column(*times), column(*times), None, column(*reached))
    ...     merge.add(PartitionedRows(rows, np.zeros(3)), writer)
    >>> [part.rows.timestamps.to_pylist() for part in merge.take()]
    [[1, 3, 4, 5, 2, 9]]
    """

    def __init__(self) -> None:
        self._parts_by_writer: dict[int, list[PartitionedRows]] = {}

    def add(self, part: PartitionedRows, writer: int) -> None:
        """Add rows after those of the same writer."""
        if len(part.partitions):
            self._parts_by_writer.setdefault(writer, []).append(part)

    def take(self) -> list[PartitionedRows]:
        """Remove and return all rows, in order, as at most one part."""
        parts = [part for writer in sorted(self._parts_by_writer) for part in self._parts_by_writer[writer]]
        several_writers = len(self._parts_by_writer) > 1
        self._parts_by_writer.clear()
        if not parts:
            return []
        whole = merged_parts(parts)
        stream_times = whole.rows.stream_times
        if not several_writers or stream_times is None:
            return [whole]
        ranks = whole.rows.ranks
        keys = [stream_times.to_numpy()] if ranks is None else [ranks.to_numpy(), stream_times.to_numpy()]
        order = np.lexsort(keys)
        columns = (None if column is None else column.take(pa.array(order)) for column in whole.rows)
        return [PartitionedRows(EncodedRows._make(columns), whole.partitions[order])]

"""`SinkBuffer`: what the sinks of a thread's tasks wrote and its producer has not got yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch
from kstreams.log.api import Producer
from kstreams.log.partitioning import split_by_partition
from kstreams.processor.context.encoded_rows import EncodedRows, concatenated
from kstreams.runtime.native.thread.row_tags import tagged, timed
from kstreams.runtime.native.thread.send_retry import SendRetry
from kstreams.runtime.native.thread.time_merge import TimeMerge
from kstreams.runtime.native.thread.writer_slices import WriterSlices

_MOST_ROWS = 65_536  # of one topic: more are sent in the middle of a round
_MOST_BYTES = 4 << 20  # of all topics


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
    slices : WriterSlices
        Say which topics are put in order of stream times, by `flush_merged` or by their readers.
    internal : collection of str
        Repartition topics: `records_out` leaves them out, `repartitioned` has them.
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
        self._count = count_partitions
        self._retry = retry
        self._merged: dict[str, TimeMerge] = {}
        self._internal = frozenset(internal)
        self._slices = slices
        self._waiting: dict[str, list[EncodedRows]] = {}
        self._rows: Counter[str] = Counter()
        self._bytes = 0
        self._partitions: dict[str, int] = {}
        self.records_out: Counter[str] = Counter()
        self.repartitioned: Counter[str] = Counter()
        self.bytes_out: Counter[str] = Counter()

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has, asked once."""
        if topic not in self._partitions:
            self._partitions[topic] = self._count(topic)
        return self._partitions[topic]

    def merges(self, topic: str) -> bool:
        """Whether the rows of a topic are told at which times they were written, for their order here or at readers."""
        return topic in self._slices.topics

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """The rows that their topic refuses for good, with the error of each."""
        return self._producer.refused(batch)

    def add(self, topic: str, rows: EncodedRows, writer: int) -> None:
        """Take rows of one topic, with the partition of each, from the task of partition `writer`."""
        size = rows.keys.nbytes + rows.values.nbytes
        self.bytes_out[topic] += size
        if self._slices.merges(topic):
            self._merged.setdefault(topic, TimeMerge()).add(rows, writer)
            return
        if (number := self._slices.number_of(topic)) is not None:
            rows = tagged(rows, number, writer)
        self._waiting.setdefault(topic, []).append(rows)
        self._rows[topic] += len(rows.keys)
        self._bytes += size
        if self._bytes >= _MOST_BYTES:
            self.flush()
        elif self._rows[topic] >= _MOST_ROWS:
            self._send(topic, self._waiting.pop(topic))

    def flush(self) -> None:
        """Send everything but what is to be merged."""
        self._bytes = 0
        self.flush_topics(list(self._waiting))

    def flush_topics(self, topics: Collection[str]) -> None:
        """The same for some topics."""
        for topic in topics:
            if parts := self._waiting.pop(topic, None):
                self._send(topic, parts)

    def flush_merged(self) -> None:
        """Send what was to be merged: all tasks have come equally far in time."""
        for topic, merge in self._merged.items():
            if parts := merge.take():
                self._send(topic, parts)

    def _send(self, topic: str, parts: list[EncodedRows]) -> None:
        rows = concatenated(parts)
        keys, values, timestamps, headers, partitions, _ = timed(rows) if topic in self._slices.timed else rows
        assert partitions is not None, "collectors choose them"
        self._rows.pop(topic, None)
        counted = self.repartitioned if topic in self._internal else self.records_out
        counted[topic] += len(keys)
        self._begin()
        for batch, _ in split_by_partition(topic, partitions, keys, values, timestamps, headers):
            self._retry.send(self._producer, batch)

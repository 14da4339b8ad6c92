"""`DriverTopics`: the topics of a test driver. It keeps what is written, and feeds back what the topology reads."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.processor.context.encoded_rows import EncodedRows


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
        self._is_input = is_input
        self._enqueue = enqueue
        self._offsets: Counter[str] = Counter()
        self.queues: dict[str, deque[Row]] = defaultdict(deque)
        self.written: set[str] = set()

    def send(self, topic: str, rows: EncodedRows, partitions: object = None) -> None:
        """Append rows to a topic, which has one partition."""
        self.written.add(topic)
        batch = rows.as_batch(topic, self._offsets[topic])
        self._offsets[topic] += len(batch)
        self.queues[topic].extend(batch.rows())
        if self._is_input(topic):
            self._enqueue(batch)

    def partitions(self, topic: str) -> int:
        """One."""
        return 1

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, LogError]:
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

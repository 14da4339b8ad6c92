"""The send buffer of a producer: rows by topic, batches by partition, and their delivery callbacks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import index

import numpy as np
import pyarrow as pa

from kstreams.errors import LogError
from kstreams.kernel.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.log.api import Delivery, OnDelivery
from kstreams.log.embedded.segments.frame import RECORD_FORMAT
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.log.record_checks import TopicFacts
from kstreams.record import Headers

ROW_OVERHEAD = 16  # bytes of a buffered row in addition to key, value and headers
FRAME_OVERHEAD = RECORD_FORMAT.record_bytes - ROW_OVERHEAD  # bytes of a record in a frame, more than in the buffer


class DeliveryCallback:
    """A callback, and the delivery that it is called with; None until the delivery is known."""

    __slots__ = ("delivery", "on_delivery")

    def __init__(self, on_delivery: OnDelivery) -> None:
        self.on_delivery = on_delivery
        self.delivery: Delivery | None = None


def write_error(target: object, error: Exception) -> LogError:
    """Return the LogError for records of a topic, partition or producer that could not be written."""
    if isinstance(error, LogError):
        return error
    wrapped = LogError(f"The records for {target} could not be written: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


class BufferedRows:
    """Records of one topic, in the order in which they were sent."""

    __slots__ = (
        "callbacks",
        "facts",
        "headers",
        "keys",
        "max_bytes",
        "max_keyless_bytes",
        "partitions",
        "timestamps",
        "values",
    )

    def __init__(self, facts: TopicFacts) -> None:
        self.facts = facts
        self.max_bytes = facts.max_bytes - FRAME_OVERHEAD
        self.max_keyless_bytes = -1 if facts.needs_key else self.max_bytes
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.headers: dict[int, Headers] = {}
        self.partitions: dict[int, int] = {}
        self.callbacks: dict[int, DeliveryCallback] = {}

    def headers_column(self) -> pa.Array | None:
        """Return the headers as an Arrow array; None when no row has headers."""
        if not self.headers:
            return None
        rows = [self.headers.get(i, ()) for i in range(len(self.keys))]
        return pa.array([[{"name": name, "value": value} for name, value in row] for row in rows], HEADERS_TYPE)

    def fail(self, topic: str, error: LogError) -> None:
        """Complete the callbacks with an error."""
        for row, callback in self.callbacks.items():
            callback.delivery = Delivery(TopicPartition(topic, self.partitions.get(row, -1)), -1, 1, error)

    def chosen_partitions(self, sticky: int, keys: pa.Array) -> np.typing.NDArray[np.int64]:
        """Return the partition of every row: the one it was sent to, else by its key, else the sticky partition."""
        partitions = partitions_of(keys, self.facts.partitions)
        partitions[partitions < 0] = sticky
        for row, partition in self.partitions.items():
            partitions[row] = partition
        return partitions


class PendingBatch:
    """Rows of one partition that are not yet written.

    Parameters
    ----------
    batch : Batch
    size : int
        Bytes that the batch takes in the buffer.
    callbacks : sequence of (int, DeliveryCallback)
        Callbacks by row.
    sent_as_batch : bool
        Whether one callback gets the delivery of all rows; otherwise each callback gets that of its own row.
    """

    __slots__ = ("batch", "callbacks", "completed", "sent_as_batch", "size")

    def __init__(
        self, batch: Batch, size: int, callbacks: Sequence[tuple[int, DeliveryCallback]], *, sent_as_batch: bool
    ) -> None:
        self.batch = batch
        self.size = size
        self.callbacks = callbacks
        self.sent_as_batch = sent_as_batch
        self.completed = False

    def fail(self, error: LogError) -> None:
        """Complete the callbacks with an error, unless they are completed already."""
        if not self.completed:
            self.complete(-1, error)

    def complete(self, offset: int, error: LogError | None) -> None:
        """Complete the callbacks with the offsets of the rows from `offset` on, or with the error."""
        self.completed = True
        for row, callback in self.callbacks:
            row_offset = -1 if error is not None else offset + row
            count = len(self.batch) if self.sent_as_batch else 1
            callback.delivery = Delivery(self.batch.source, row_offset, count, error)


class SendBuffer:
    """Rows and batches in the order in which they were sent.

    Parameters
    ----------
    on_failure : callable
        Called with the error for rows that cannot be made into columns, after their callbacks are completed.

    Attributes
    ----------
    bytes : int
        Size of all buffered records.
    rows : dict of str to BufferedRows
        Rows by topic that are not yet divided into partitions.
    batches : dict of TopicPartition to list of PendingBatch
    """

    def __init__(self, on_failure: Callable[[LogError], None]) -> None:
        self._on_failure = on_failure
        self.bytes = 0
        self.rows: dict[str, BufferedRows] = {}
        self.batches: dict[TopicPartition, list[PendingBatch]] = {}
        self._callbacks: deque[DeliveryCallback] = deque()
        self._sticky: dict[str, int] = {}

    def rows_for(self, topic: str, facts: TopicFacts) -> BufferedRows:
        """Return the rows of a topic to append to; they stay in `rows` until they are split."""
        rows = self.rows.get(topic)
        if rows is None:
            rows = self.rows[topic] = BufferedRows(facts)
        return rows

    def callback(self, on_delivery: OnDelivery) -> DeliveryCallback:
        """Add a callback to the queue of callbacks, which are called in the order of sending."""
        callback = DeliveryCallback(on_delivery)
        self._callbacks.append(callback)
        return callback

    def add_details(
        self, rows: BufferedRows, headers: Headers, partition: int | None, on_delivery: OnDelivery | None
    ) -> None:
        """Add headers, partition and callback of the row that is appended to `rows` next."""
        row = len(rows.keys)
        if headers:
            rows.headers[row] = headers
        if partition is not None:
            rows.partitions[row] = index(partition)
        if on_delivery is not None:
            rows.callbacks[row] = self.callback(on_delivery)

    def add_batch(self, batch: Batch, size: int, on_delivery: OnDelivery | None) -> None:
        """Add a batch, after the rows of its topic."""
        self.split(batch.source.topic)
        callbacks = [] if on_delivery is None else [(0, self.callback(on_delivery))]
        self.batches.setdefault(batch.source, []).append(PendingBatch(batch, size, callbacks, sent_as_batch=True))
        self.bytes += size

    def refuse_batch(self, batch: Batch, error: LogError, on_delivery: OnDelivery | None) -> None:
        """Let the callback of a batch that is not taken have the error, in the order of sending."""
        if on_delivery is not None:
            self.callback(on_delivery).delivery = Delivery(batch.source, -1, len(batch), error)

    def split_all(self) -> None:
        """Divide all rows into one batch per partition."""
        for topic in list(self.rows):
            self.split(topic)

    def split(self, topic: str) -> None:
        """Divide the rows of a topic into one batch per partition."""
        rows = self.rows.pop(topic, None)
        if rows is None or not rows.keys:
            return
        try:
            batches = list(self._partition_batches(topic, rows))
        except Exception as error:
            failure = write_error(repr(topic), error)
            rows.fail(topic, failure)
            self._on_failure(failure)
            return
        for pending in batches:
            self.batches.setdefault(pending.batch.source, []).append(pending)

    def _partition_batches(self, topic: str, rows: BufferedRows) -> Iterator[PendingBatch]:
        keys = pa.array(rows.keys, pa.binary())
        values = pa.array(rows.values, pa.binary())
        sticky = self._sticky[topic] = (self._sticky.get(topic, -1) + 1) % rows.facts.partitions
        partitions = rows.chosen_partitions(sticky, keys)
        timestamps = pa.array(rows.timestamps, pa.int64())
        for batch, places in split_by_partition(topic, partitions, keys, values, timestamps, rows.headers_column()):
            size = batch.keys.nbytes + batch.values.nbytes
            yield PendingBatch(batch, size, _callbacks_at(rows, places), sent_as_batch=False)

    def drop(self, error: LogError) -> None:
        """Drop all records, and complete their callbacks with the error."""
        self.split_all()
        for batches in self.batches.values():
            for pending in batches:
                pending.complete(-1, error)
        self.batches.clear()
        self.bytes = 0

    def completed(self) -> tuple[OnDelivery, Delivery] | None:
        """Remove and return the next callback in the order of sending, with its delivery; None if it is not known."""
        if not self._callbacks or (delivery := self._callbacks[0].delivery) is None:
            return None
        return self._callbacks.popleft().on_delivery, delivery


def _callbacks_at(rows: BufferedRows, places: np.typing.NDArray[np.int64]) -> list[tuple[int, DeliveryCallback]]:
    if not rows.callbacks:
        return []
    return [(i, rows.callbacks[place]) for i, place in enumerate(places.tolist()) if place in rows.callbacks]

"""What a producer was given and has not written yet: rows by topic, batches by partition, and their callbacks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.errors import LogError
from kstreams.kernel.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.log.api import Delivery, OnDelivery
from kstreams.log.embedded.catalogue.catalogue import Topic
from kstreams.log.embedded.segments.topic_settings import TopicSettings
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.record import Headers

ROW_OVERHEAD = 16  # bytes that a row costs besides its key and value
_FRAME_SHARE = 64  # bytes that the offsets and timestamps of a single row can take


class DeliveryCallback:
    """A callback and, once it is known, the delivery that it is called with."""

    __slots__ = ("delivery", "on_delivery")

    def __init__(self, on_delivery: OnDelivery) -> None:
        self.on_delivery = on_delivery
        self.delivery: Delivery | None = None


def failure(what: object, error: Exception) -> LogError:
    """The error for records that could not be written, whatever went wrong."""
    if isinstance(error, LogError):
        return error
    wrapped = LogError(f"The records for {what} could not be written: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


class BufferedRows:
    """Records of one topic as they were sent."""

    __slots__ = (
        "callbacks",
        "count",
        "headers",
        "keys",
        "most_bytes",
        "needs_key",
        "partitions",
        "timestamps",
        "values",
    )

    def __init__(self, topic: Topic, settings: TopicSettings) -> None:
        self.count = topic.partitions
        self.needs_key = settings.compact
        self.most_bytes = settings.max_message_bytes - _FRAME_SHARE
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.headers: dict[int, Headers] = {}
        self.partitions: dict[int, int] = {}
        self.callbacks: dict[int, DeliveryCallback] = {}

    def headers_column(self) -> pa.Array | None:
        """The headers as Arrow, None when no row has any."""
        if not self.headers:
            return None
        rows = [self.headers.get(i, ()) for i in range(len(self.keys))]
        return pa.array([[{"name": name, "value": value} for name, value in row] for row in rows], HEADERS_TYPE)

    def fail(self, topic: str, error: LogError) -> None:
        """Complete the callbacks with an error: the rows were not written."""
        for row, callback in self.callbacks.items():
            callback.delivery = Delivery(TopicPartition(topic, self.partitions.get(row, -1)), -1, 1, error)

    def chosen_partitions(self, sticky: int, keys: pa.Array) -> np.ndarray[Any, np.dtype[Any]]:
        """Partition of every row: the given one, else by its key, else the sticky one."""
        chosen = partitions_of(keys, self.count)
        chosen[chosen < 0] = sticky
        for row, partition in self.partitions.items():
            chosen[row] = partition
        return chosen


class PendingBatch:
    """Rows of one partition that wait to be written, in order."""

    __slots__ = ("batch", "callbacks", "completed", "size", "whole")

    def __init__(self, batch: Batch, size: int, callbacks: Sequence[tuple[int, DeliveryCallback]], whole: bool) -> None:
        self.batch = batch
        self.size = size
        self.callbacks = callbacks
        self.whole = whole
        self.completed = False

    def fail(self, error: LogError) -> None:
        """Complete the callbacks with an error, unless they are complete."""
        if not self.completed:
            self.complete(-1, error)

    def complete(self, offset: int, error: LogError | None) -> None:
        """Complete the callbacks: with the offsets of the rows, or with the error."""
        self.completed = True
        for row, callback in self.callbacks:
            at = -1 if error is not None else offset + row
            callback.delivery = Delivery(self.batch.source, at, len(self.batch) if self.whole else 1, error)


class SendBuffer:
    """Rows and batches in the order they were sent; knows how many bytes it holds.

    Parameters
    ----------
    on_failure : callable
        Called for rows that cannot be made into columns, after their callbacks are completed.
    """

    def __init__(self, on_failure: Callable[[LogError], None]) -> None:
        self._on_failure = on_failure
        self.bytes = 0
        self.rows: dict[str, BufferedRows] = {}
        self.waiting: dict[TopicPartition, list[PendingBatch]] = {}
        self._callbacks: deque[DeliveryCallback] = deque()
        self._sticky: dict[str, int] = {}

    def rows_for(self, topic: Topic, settings: TopicSettings) -> BufferedRows:
        """Where to put the next rows for a topic; found in `rows` until they are split."""
        rows = self.rows.get(topic.name)
        if rows is None:
            rows = self.rows[topic.name] = BufferedRows(topic, settings)
        return rows

    def callback(self, on_delivery: OnDelivery) -> DeliveryCallback:
        """A place in the queue of callbacks."""
        callback = DeliveryCallback(on_delivery)
        self._callbacks.append(callback)
        return callback

    def add_batch(self, batch: Batch, size: int, on_delivery: OnDelivery | None) -> None:
        """Put in a batch, behind the rows for its topic."""
        self.split(batch.source.topic)
        callbacks = [] if on_delivery is None else [(0, self.callback(on_delivery))]
        self.waiting.setdefault(batch.source, []).append(PendingBatch(batch, size, callbacks, whole=True))
        self.bytes += size

    def split_all(self) -> None:
        """Turn all rows into batches."""
        for topic in list(self.rows):
            self.split(topic)

    def split(self, topic: str) -> None:
        """Turn the rows of a topic into one batch for each partition."""
        rows = self.rows.pop(topic, None)
        if rows is None or not rows.keys:
            return
        try:
            waiting = list(self._cut(topic, rows))
        except Exception as error:
            lost = failure(repr(topic), error)
            rows.fail(topic, lost)
            self._on_failure(lost)
            return
        for pending in waiting:
            self.waiting.setdefault(pending.batch.source, []).append(pending)

    def _cut(self, topic: str, rows: BufferedRows) -> Iterator[PendingBatch]:
        keys = pa.array(rows.keys, pa.binary())
        values = pa.array(rows.values, pa.binary())
        sticky = self._sticky[topic] = (self._sticky.get(topic, -1) + 1) % rows.count
        chosen = rows.chosen_partitions(sticky, keys)
        timestamps = pa.array(rows.timestamps, pa.int64())
        for batch, places in split_by_partition(topic, chosen, keys, values, timestamps, rows.headers_column()):
            size = batch.keys.nbytes + batch.values.nbytes
            yield PendingBatch(batch, size, _callbacks_at(rows, places), whole=False)

    def take(self, source: TopicPartition) -> list[PendingBatch]:
        """Take out what waits for a partition."""
        return self.waiting.pop(source, [])

    def drop(self, error: LogError) -> None:
        """Drop everything; the callbacks get the error."""
        self.split_all()
        for waiting in self.waiting.values():
            for pending in waiting:
                pending.complete(-1, error)
        self.waiting.clear()
        self.bytes = 0

    def completed(self) -> DeliveryCallback | None:
        """Take out the next callback in the order in which the records were sent, if it can be made."""
        if self._callbacks and self._callbacks[0].delivery is not None:
            return self._callbacks.popleft()
        return None


def _callbacks_at(rows: BufferedRows, places: np.ndarray[Any, np.dtype[Any]]) -> list[tuple[int, DeliveryCallback]]:
    if not rows.callbacks:
        return []
    return [(i, rows.callbacks[place]) for i, place in enumerate(places.tolist()) if place in rows.callbacks]

"""What a producer was given and has not written yet: rows by topic, pieces by partition, and who waits for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.errors import LogError
from kstreams.log.api import Delivery, OnDelivery
from kstreams.log.embedded.catalogue.catalogue import Topic
from kstreams.log.embedded.segments.topic_settings import TopicSettings
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.record import Headers

ROW_OVERHEAD = 16  # bytes that a row costs besides its key and value
_FRAME_SHARE = 64  # bytes that the offsets and timestamps of a single row can take


class PendingDelivery:
    """A callback and, once it is known, what it will be told."""

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

    __slots__ = ("count", "headers", "keys", "most_bytes", "needs_key", "partitions", "tickets", "timestamps", "values")

    def __init__(self, topic: Topic, settings: TopicSettings) -> None:
        self.count, self.needs_key = topic.partitions, settings.compact
        self.most_bytes = settings.max_message_bytes - _FRAME_SHARE
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.headers: dict[int, Headers] = {}
        self.partitions: dict[int, int] = {}
        self.tickets: dict[int, PendingDelivery] = {}

    def headers_column(self) -> pa.Array | None:
        """The headers as Arrow, None when no row has any."""
        if not self.headers:
            return None
        rows = [self.headers.get(i, ()) for i in range(len(self.keys))]
        return pa.array([[{"name": name, "value": value} for name, value in row] for row in rows], HEADERS_TYPE)

    def fail(self, topic: str, error: LogError) -> None:
        """Tell all who wait that the rows were not written."""
        for row, ticket in self.tickets.items():
            ticket.delivery = Delivery(TopicPartition(topic, self.partitions.get(row, -1)), -1, 1, error)

    def chosen_partitions(self, sticky: int, keys: pa.Array) -> np.ndarray[Any, np.dtype[Any]]:
        """Partition of every row: the given one, else by its key, else the sticky one."""
        chosen = partitions_of(keys, self.count)
        chosen[chosen < 0] = sticky
        for row, partition in self.partitions.items():
            chosen[row] = partition
        return chosen


class PendingBatch:
    """Rows of one partition that wait to be written, in order."""

    __slots__ = ("batch", "settled", "size", "tickets", "whole")

    def __init__(self, batch: Batch, size: int, tickets: Sequence[tuple[int, PendingDelivery]], whole: bool) -> None:
        self.batch, self.size, self.tickets, self.whole = batch, size, tickets, whole
        self.settled = False

    def fail(self, error: LogError) -> None:
        """Note for all who do not know better yet that the rows were not written."""
        if not self.settled:
            self.settle(-1, error)

    def settle(self, offset: int, error: LogError | None) -> None:
        """Note for all who wait where the rows are, or why they are not."""
        self.settled = True
        for row, ticket in self.tickets:
            at = -1 if error is not None else offset + row
            ticket.delivery = Delivery(self.batch.source, at, len(self.batch) if self.whole else 1, error)


class SendBuffer:
    """Rows and batches in the order they were sent; knows how many bytes it holds.

    Parameters
    ----------
    on_failure : callable
        Told of rows that cannot be made into columns; who waits for them has been told then.
    """

    def __init__(self, on_failure: Callable[[LogError], None]) -> None:
        self._on_failure = on_failure
        self.bytes = 0
        self.rows: dict[str, BufferedRows] = {}
        self.pieces: dict[TopicPartition, list[PendingBatch]] = {}
        self._tickets: deque[PendingDelivery] = deque()
        self._sticky: dict[str, int] = {}

    def rows_for(self, topic: Topic, settings: TopicSettings) -> BufferedRows:
        """Where to put the next rows for a topic; found in `rows` until they are split."""
        rows = self.rows.get(topic.name)
        if rows is None:
            rows = self.rows[topic.name] = BufferedRows(topic, settings)
        return rows

    def ticket(self, on_delivery: OnDelivery) -> PendingDelivery:
        """A place in the queue of callbacks."""
        ticket = PendingDelivery(on_delivery)
        self._tickets.append(ticket)
        return ticket

    def add_batch(self, batch: Batch, size: int, on_delivery: OnDelivery | None) -> None:
        """Put in a batch, behind the rows for its topic."""
        self.split(batch.source.topic)
        tickets = [] if on_delivery is None else [(0, self.ticket(on_delivery))]
        self.pieces.setdefault(batch.source, []).append(PendingBatch(batch, size, tickets, whole=True))
        self.bytes += size

    def split_all(self) -> None:
        """Turn all rows into pieces."""
        for topic in list(self.rows):
            self.split(topic)

    def split(self, topic: str) -> None:
        """Turn the rows of a topic into one piece for each partition."""
        rows = self.rows.pop(topic, None)
        if rows is None or not rows.keys:
            return
        try:
            pieces = list(self._cut(topic, rows))
        except Exception as error:
            lost = failure(repr(topic), error)
            rows.fail(topic, lost)
            self._on_failure(lost)
            return
        for piece in pieces:
            self.pieces.setdefault(piece.batch.source, []).append(piece)

    def _cut(self, topic: str, rows: BufferedRows) -> Iterator[PendingBatch]:
        keys, values = pa.array(rows.keys, pa.binary()), pa.array(rows.values, pa.binary())
        sticky = self._sticky[topic] = (self._sticky.get(topic, -1) + 1) % rows.count
        chosen = rows.chosen_partitions(sticky, keys)
        timestamps = pa.array(rows.timestamps, pa.int64())
        for batch, places in split_by_partition(topic, chosen, keys, values, timestamps, rows.headers_column()):
            size = batch.keys.nbytes + batch.values.nbytes
            yield PendingBatch(batch, size, _tickets_at(rows, places), whole=False)

    def take(self, source: TopicPartition) -> list[PendingBatch]:
        """Take out what waits for a partition."""
        return self.pieces.pop(source, [])

    def drop(self, error: LogError) -> None:
        """Forget everything; who waits is told the error."""
        self.split_all()
        for pieces in self.pieces.values():
            for piece in pieces:
                piece.settle(-1, error)
        self.pieces.clear()
        self.bytes = 0

    def settled(self) -> PendingDelivery | None:
        """Take out the next callback in the order in which the records were sent, if it can be made."""
        if self._tickets and self._tickets[0].delivery is not None:
            return self._tickets.popleft()
        return None


def _tickets_at(rows: BufferedRows, places: np.ndarray[Any, np.dtype[Any]]) -> list[tuple[int, PendingDelivery]]:
    if not rows.tickets:
        return []
    return [(i, rows.tickets[place]) for i, place in enumerate(places.tolist()) if place in rows.tickets]

"""`KafkaConsumer`: a reader of assigned partitions of a cluster.

`assign`, `seek`, `pause` and `resume` only store the change, and `poll` applies it to the client. A position moves past
transaction markers when the client reports the end of a partition.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress, pairwise
from operator import itemgetter, ne
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition, headers_column
from kstreams.kernel.durations import Time, time_ms
from kstreams.log.api import Span, Throttling
from kstreams.log.kafka.connection import TIMEOUT_S, Connection, client_partitions
from kstreams.log.kafka.failures import error_of, log_error
from kstreams.log.kafka.quotas import ThrottleTimes
from kstreams.log.settings import QUOTA_DELAYS
from kstreams.os.forks import of_one_process

_TIME = itemgetter(1)
_CONSUMER_DEFAULTS = {
    "group.id": "kstreams",  # required by the client, which does not join the group
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "queued.min.messages": 100_000,
    "fetch.wait.max.ms": 100,  # an empty response reports the end of a partition (default: after 500 ms)
    "fetch.queue.backoff.ms": 5,  # the default of 1 s makes reading eight times slower
}
_FIXED_SETTINGS = {"enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": True}
_MAX_MESSAGES = 5_000  # per call of the client
_WAKEUP_CHECK_S = 0.004  # the interval at which a waiting reader checks for a `wakeup`
_METADATA_TIMEOUT_S = 1.0  # for the partitions of a topic
_MAX_BUFFERED_ROWS = 10_000
"""The number of buffered rows of a paused partition at which the client stops fetching it."""
StartOffsets = Callable[[Collection[TopicPartition]], dict[TopicPartition, int]]
_DELETED = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


class KafkaConsumer:
    """See `kstreams.log.api.Consumer`.

    Parameters
    ----------
    connection : Connection
    config : mapping or None
        Settings of Kafka's consumer, or of librdkafka.
    """

    def __init__(self, connection: Connection, config: Mapping[str, Any] | None = None) -> None:
        settings = {**_CONSUMER_DEFAULTS, **(config or {})}
        settings.pop("max.poll.records", None)  # a parameter of `poll`
        settings.pop(QUOTA_DELAYS, None)  # brokers delay their responses
        if settings["auto.offset.reset"] == "none":
            settings["auto.offset.reset"] = "error"
        self._connection = connection
        self._throttle_times = ThrottleTimes()
        fixed = {**_FIXED_SETTINGS, "throttle_cb": self._throttle_times.record}
        self._client = connection.client("consumer", lambda checked: Client({**checked, **fixed}), settings)
        self._is_committed_only = settings["isolation.level"] == "read_committed"
        self._fetched: dict[TopicPartition, int] = {}  # the next offset from the client
        self._buffered: dict[TopicPartition, deque[Batch]] = {}  # rows that `poll` has not returned yet
        self._fetching: set[TopicPartition] = set()  # the partitions that are assigned to the client
        self._partition_counts: dict[str, int] = {}  # by topic, from the metadata of the client
        self._paused: set[TopicPartition] = set()
        self._at_end: set[TopicPartition] = set()
        self._failure: LogError | None = None
        self._wakeup = threading.Event()
        of_one_process(self, "This consumer", LogError)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions. New ones start at the beginning of the log."""
        self._assign(partitions, self._connection.beginnings)

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read."""
        return frozenset(self._fetched)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at `offset`."""
        self._failure = None
        if offset < 0:
            raise LogError(f"The position of {TopicPartition(*partition)} cannot be {offset}: give 0 or more.")
        source = self._assigned(partition)
        if offset == self.position(source) and source in self._fetching:
            return
        self._stop(source)
        self._buffered.pop(source, None)
        self._fetched[source] = offset

    def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Continue at the first record of these partitions. Default: all assigned partitions."""
        self._seek_all(self._connection.beginnings(map(self._assigned, partitions or self._fetched)))

    def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Continue at the end of these partitions. Default: all assigned partitions."""
        self._seek_all(self.end_offsets([self._assigned(source) for source in partitions or self._fetched]))

    def seek_to_time(self, partition: TopicPartition, time: Time) -> None:
        """Continue at the first record whose timestamp is at or after `time`, or at the end if there is none."""
        times = {self._assigned(partition): time_ms(time)}
        self._seek_all(self._connection.offsets_at_times(times, committed_only=self._is_committed_only))

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that `poll` would read."""
        source = self._assigned(partition)
        batches = self._buffered.get(source)
        return int(batches[0].offsets[0]) if batches else self._fetched[source]

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets up to which this consumer could read now."""
        return self._connection.ends(partitions, committed_only=self._is_committed_only)

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return True if the last poll has reached the end of the partition."""
        source = self._assigned(partition)
        return source in self._at_end and not self._buffered.get(source)

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """Return at most `max_records` rows. Waits up to `timeout` seconds if there are none."""
        self._raise_failure()
        self._start(self._fetched.keys() - self._paused)
        batches = self._pop_buffered(max_records)
        remaining_rows = max_records - sum(map(len, batches))
        deadline = monotonic() + timeout
        while remaining_rows > 0:
            messages = self._messages(remaining_rows, 0 if batches else deadline - monotonic())
            if not messages:
                break
            new_batches = self._batches(messages)
            batches += new_batches
            remaining_rows -= sum(map(len, new_batches))
        self._wakeup.clear()
        if not batches:
            self._raise_failure()
        return batches

    def skim(self, partition: TopicPartition, end: int) -> Span | None:
        """Read and count the next records before `end`. Other partitions are not fetched during this call."""
        source = self._assigned(partition)
        for other in self._fetching - {source}:
            self._stop(other)
        self._start({source})
        deadline = monotonic() + TIMEOUT_S
        while self.position(source) < end:
            self._raise_failure()
            if batch := self._pop_before(source, end):
                return Span(int(batch.offsets[0]), self.position(source), len(batch), max(batch.timestamps.to_pylist()))
            if source in self._at_end or self.position(source) >= end:
                return None
            if monotonic() > deadline:
                raise LogError(f"{source} cannot be read: no records and no end came within {TIMEOUT_S} s.")
            self._buffer(self._batches(self._messages(_MAX_MESSAGES, 0.1)))
        return None

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Make `poll` skip these partitions until `resume`."""
        self._paused.update(map(self._assigned, partitions))

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Make `poll` read these partitions again."""
        self._paused.difference_update(partitions)

    def close(self) -> None:
        """Close the client. Batches that were polled stay valid."""
        self._fetched.clear()
        self._client.close()

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _assign(self, partitions: Collection[TopicPartition], start_offsets: StartOffsets) -> None:
        assigned = [TopicPartition(*source) for source in partitions]
        self._connection.require(assigned)
        new = [source for source in assigned if source not in self._fetched]
        starts = start_offsets(new) if new else {}
        for source in self._fetched.keys() - set(assigned):
            self._stop(source)
            del self._fetched[source]
            self._buffered.pop(source, None)
        self._paused &= set(assigned)
        self._fetched |= starts

    def _start(self, partitions: Collection[TopicPartition]) -> None:
        """Make the client fetch these partitions, from the last fetched record of each."""
        new = [source for source in partitions if source not in self._fetching]
        if new:
            self._refresh_metadata(new)
            self._client.incremental_assign([KafkaPartition(*source, self._fetched[source]) for source in new])
            self._fetching.update(new)

    def _refresh_metadata(self, sources: Iterable[TopicPartition]) -> None:
        """Make the client read the metadata of new partitions, which it would otherwise do once a second."""
        for topic, partition in sorted(sources):
            at_least = partition + 1
            if self._partition_counts.get(topic, 0) < at_least:
                read = partial(client_partitions, self._client, topic, _METADATA_TIMEOUT_S)
                self._partition_counts[topic] = max(at_least, self._connection.await_partitions(topic, at_least, read))

    def _stop(self, source: TopicPartition) -> None:
        """Make the client drop a partition with its fetched messages."""
        self._at_end.discard(source)
        if source in self._fetching:
            self._fetching.discard(source)
            self._client.incremental_unassign([KafkaPartition(*source)])

    def _messages(self, limit: int, timeout: float) -> list[Message]:
        count = min(limit, _MAX_MESSAGES)
        try:
            messages: list[Message] = self._client.consume(count, 0)
            if not messages and timeout > 0:
                first = self._first_message(timeout)  # `consume` would wait until it has `count` messages
                messages = [] if first is None else [first, *self._client.consume(count - 1, 0)]
        except KafkaException as error:
            raise error_of("Reading failed", error) from None
        return messages

    def _first_message(self, timeout: float) -> Message | None:
        """Return the next message. None after `timeout`. The wait has short parts, because the client has no wakeup."""
        deadline = monotonic() + timeout
        while (remaining_s := deadline - monotonic()) > 0 and not self._wakeup.is_set():
            if (message := self._client.poll(min(remaining_s, _WAKEUP_CHECK_S))) is not None:
                return message
        return None

    def throttling(self) -> Throttling:
        """Return how the quotas of the brokers have delayed this consumer."""
        return self._throttle_times.throttling()

    def wakeup(self) -> None:
        """Make the `poll` that waits, or the next one that would wait, return. Any thread may call this."""
        self._wakeup.set()

    def _batches(self, messages: list[Message]) -> list[Batch]:
        """Return the rows for `poll`. Buffer rows of paused partitions, and handle events."""
        records, events = split_events(messages)
        batches = []
        for batch in self._current(batches_of(records) if records else []):
            self._fetched[batch.source] = int(batch.offsets[-1]) + 1
            self._at_end.discard(batch.source)
            if batch.source in self._paused:
                self._buffer([batch])
            else:
                batches.append(batch)
        for event in events:
            self._handle_event(event)
        return batches

    def _current(self, batches: Iterable[Batch]) -> Iterable[Batch]:
        """Leave out rows that were fetched before a partition was dropped or `seek` changed the position."""
        for batch in batches:
            if batch.source in self._fetching:
                start = int(batch.offsets.searchsorted(self._fetched[batch.source]))
                if start < len(batch):
                    yield batch.slice(start, len(batch)) if start else batch

    def _buffer(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            buffered = self._buffered.setdefault(batch.source, deque())
            buffered.append(batch)
            if batch.source in self._paused and sum(map(len, buffered)) > _MAX_BUFFERED_ROWS:
                self._stop(batch.source)

    def _pop_buffered(self, limit: int) -> list[Batch]:
        popped_batches: list[Batch] = []
        remaining_rows = limit
        sources = [source for source, batches in self._buffered.items() if batches and source not in self._paused]
        for source in sources:
            while remaining_rows > 0 and (batch := self._pop_batch(source, remaining_rows)) is not None:
                popped_batches.append(batch)
                remaining_rows -= len(batch)
        return popped_batches

    def _pop_batch(self, source: TopicPartition, limit: int) -> Batch | None:
        """Remove and return the next buffered rows of a partition, at most `limit`."""
        batches = self._buffered.get(source)
        if not batches:
            return None
        batch = batches.popleft()
        if len(batch) > limit:
            batches.appendleft(batch.slice(limit, len(batch)))
            return batch.slice(0, limit)
        return batch

    def _pop_before(self, source: TopicPartition, end: int) -> Batch | None:
        batches = self._buffered.get(source)
        return self._pop_batch(source, int(batches[0].offsets.searchsorted(end))) if batches else None

    def _handle_event(self, event: Message) -> None:
        """Store the end of a partition, or an error."""
        source = TopicPartition(event.topic(), event.partition())
        error = event.error()
        if source not in self._fetching:
            return
        if error.code() == KafkaError._PARTITION_EOF:
            if event.offset() >= self._fetched[source]:
                self._fetched[source] = event.offset()
                self._at_end.add(source)
        elif error.code() in _DELETED:
            self._failure = UnknownTopicError(f"The topic {source.topic!r} was deleted while it was read.")
        else:
            self._failure = log_error(f"{source} cannot be read", error)
            self._stop(source)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _seek_all(self, offsets: Mapping[TopicPartition, int]) -> None:
        for source, offset in offsets.items():
            self.seek(source, offset)

    def _assigned(self, source: TopicPartition) -> TopicPartition:
        if source not in self._fetched:
            raise LogError(f"{TopicPartition(*source)} is not assigned to this consumer: assign it first.")
        return TopicPartition(*source)


def batches_of(messages: Sequence[Message]) -> list[Batch]:
    """Return messages without errors as one batch per partition, in the order of offsets."""
    if len(set(map(Message.partition, messages))) == len(set(map(Message.topic, messages))) == 1:
        return [_batch(TopicPartition(messages[0].topic(), messages[0].partition()), messages)]
    sources = list(zip(map(Message.topic, messages), map(Message.partition, messages), strict=True))
    by_partition: dict[tuple[str, int], list[Message]] = {}
    changes = compress(range(1, len(sources)), map(ne, sources[1:], sources))
    for start, stop in pairwise((0, *changes, len(sources))):
        by_partition.setdefault(sources[start], []).extend(messages[start:stop])
    return [_batch(TopicPartition(topic, number), part) for (topic, number), part in by_partition.items()]


def split_events(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Divide messages into records, and events: errors and ends of partitions."""
    if not any(map(Message.error, messages)):
        return list(messages), []
    errors = list(map(Message.error, messages))
    return list(compress(messages, [error is None for error in errors])), list(compress(messages, errors))


def _batch(source: TopicPartition, messages: Sequence[Message]) -> Batch:
    count = len(messages)
    headers = list(map(Message.headers, messages))
    return Batch(
        source,
        _offsets(messages),
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        pa.array(np.fromiter(map(_TIME, map(Message.timestamp, messages)), np.int64, count)),
        headers_column([pairs or () for pairs in headers]) if any(headers) else None,
    )


def _offsets(messages: Sequence[Message]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the ascending offsets of messages. If they have no gap, no message has to be read."""
    first = messages[0].offset()
    last = messages[-1].offset()
    count = len(messages)
    if last - first == count - 1:
        return np.arange(first, last + 1, dtype=np.int64)
    return np.fromiter(map(Message.offset, messages), np.int64, count)

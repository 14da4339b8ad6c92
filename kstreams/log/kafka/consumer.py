"""`KafkaConsumer`: assigned partitions of a cluster, their positions, and their fetched rows.

`assign`, `seek`, `pause` and `resume` only note the change: the client gets and loses partitions in `poll`. A position
moves past transaction markers when the client reports the end of a partition.
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
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import OffsetSpec

from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition, headers_column
from kstreams.kernel.durations import Time, time_ms
from kstreams.log.api import Span
from kstreams.log.kafka.connection import TIMEOUT_S, Connection, client_partitions
from kstreams.log.kafka.failures import error_of, log_error
from kstreams.os.forks import of_one_process

_TIME = itemgetter(1)
_CONSUMER_DEFAULTS = {
    "group.id": "kstreams",  # the client needs one; no member joins the group
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "queued.min.messages": 100_000,
    "fetch.wait.max.ms": 100,  # the end of a partition is known from an empty answer (default: after 500 ms)
    "fetch.queue.backoff.ms": 5,  # the default, 1 s, makes reading eight times slower
}
_FIXED_SETTINGS = {"enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": True}
_MAX_MESSAGES = 5_000  # per call of the client
_WAKEUP_CHECK_S = 0.004  # time in which a waiting reader notices a `wakeup`
_METADATA_TIMEOUT_S = 1.0  # for the partitions of a topic
_MAX_HELD_ROWS = 10_000  # of a paused partition; then the client stops fetching it
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
        if settings["auto.offset.reset"] == "none":
            settings["auto.offset.reset"] = "error"
        self._connection = connection
        self._client = connection.client("consumer", lambda checked: Client({**checked, **_FIXED_SETTINGS}), settings)
        self._is_committed_only = settings["isolation.level"] == "read_committed"
        self._fetched: dict[TopicPartition, int] = {}  # next offset that the client returns
        self._buffered: dict[TopicPartition, deque[Batch]] = {}  # fetched by the client, and not yet returned by `poll`
        self._fetching: set[TopicPartition] = set()  # assigned to the client
        self._known_partitions: dict[str, int] = {}  # number of partitions by topic, as the client knows them
        self._paused: set[TopicPartition] = set()
        self._at_end: set[TopicPartition] = set()
        self._failure: LogError | None = None
        self._wakeup = threading.Event()
        of_one_process(self, "This consumer", LogError)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions; new ones start at the beginning of the log."""
        self._assign(partitions, self._connection.beginnings)

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read."""
        return frozenset(self._fetched)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from `offset`."""
        self._failure = None
        if offset < 0:
            raise LogError(f"An offset is at least 0, not {offset}.")
        source = self._assigned(partition)
        if offset == self.position(source) and source in self._fetching:
            return
        self._stop(source)
        self._buffered.pop(source, None)
        self._fetched[source] = offset

    def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Go to the first record of these partitions; without names, of all assigned partitions."""
        self._seek_all(self._connection.beginnings(map(self._assigned, partitions or self._fetched)))

    def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Go to the end of these partitions; without names, of all assigned partitions."""
        self._seek_all(self.end_offsets([self._assigned(source) for source in partitions or self._fetched]))

    def seek_to_time(self, partition: TopicPartition, time: Time) -> None:
        """Go to the first record whose timestamp is at or after `time`, or to the end if there is none."""
        self._seek_all(self._offsets_since([self._assigned(partition)], time_ms(time)))

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that `poll` would read."""
        source = self._assigned(partition)
        batches = self._buffered.get(source)
        return int(batches[0].offsets[0]) if batches else self._fetched[source]

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets up to which this consumer could read now, from the cluster."""
        return self._connection.ends(partitions, committed_only=self._is_committed_only)

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return whether the last poll reached the end of the partition."""
        source = self._assigned(partition)
        return source in self._at_end and not self._buffered.get(source)

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """Return fetched rows, at most `max_records`; waits up to `timeout` seconds if there are none."""
        self._raise_failure()
        self._start(self._fetched.keys() - self._paused)
        batches = self._take_buffered(max_records)
        remaining = max_records - sum(map(len, batches))
        until = monotonic() + timeout
        while remaining > 0:
            messages = self._messages(remaining, 0 if batches else until - monotonic())
            if not messages:
                break
            fetched = self._take_messages(messages)
            batches += fetched
            remaining -= sum(map(len, fetched))
        self._wakeup.clear()
        if not batches:
            self._raise_failure()
        return batches

    def skim(self, partition: TopicPartition, end: int) -> Span | None:
        """Read and count the next records before `end`; other partitions are not fetched meanwhile."""
        source = self._assigned(partition)
        for other in self._fetching - {source}:
            self._stop(other)
        self._start({source})
        until = monotonic() + TIMEOUT_S
        while self.position(source) < end:
            self._raise_failure()
            if batch := self._before(source, end):
                return Span(int(batch.offsets[0]), self.position(source), len(batch), max(batch.timestamps.to_pylist()))
            if source in self._at_end or self.position(source) >= end:
                return None
            if monotonic() > until:
                raise LogError(f"{source}: the cluster sent neither records nor the end within {TIMEOUT_S} s.")
            self._buffer(self._take_messages(self._messages(_MAX_MESSAGES, 0.1)))
        return None

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Let `poll` skip these partitions until `resume`."""
        self._paused.update(map(self._assigned, partitions))

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Let `poll` read these partitions again."""
        self._paused.difference_update(partitions)

    def close(self) -> None:
        """Close the client; batches that were polled stay valid."""
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

    def _offsets_since(self, sources: Collection[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        """Return the first offset at or after a time; the end if there is none."""
        spec = OffsetSpec.for_timestamp(max(0, timestamp_ms))
        offsets = self._connection.offsets(sources, spec, committed_only=self._is_committed_only)
        without_record = [source for source, offset in offsets.items() if offset < 0]
        return offsets | self.end_offsets(without_record)

    def _start(self, partitions: Collection[TopicPartition]) -> None:
        """Let the client fetch these partitions, after the last fetched record of each."""
        new = [source for source in partitions if source not in self._fetching]
        if new:
            self._refresh_metadata(new)
            self._client.incremental_assign([Place(*source, self._fetched[source]) for source in new])
            self._fetching.update(new)

    def _refresh_metadata(self, sources: Iterable[TopicPartition]) -> None:
        """Let the client read the metadata of partitions that are new to it; by itself it does so once a second."""
        for topic, partition in sorted(sources):
            at_least = partition + 1
            if self._known_partitions.get(topic, 0) < at_least:
                read = partial(client_partitions, self._client, topic, _METADATA_TIMEOUT_S)
                self._known_partitions[topic] = max(at_least, self._connection.await_partitions(topic, at_least, read))

    def _stop(self, source: TopicPartition) -> None:
        """Let the client drop a partition with its fetched messages."""
        self._at_end.discard(source)
        if source in self._fetching:
            self._fetching.discard(source)
            self._client.incremental_unassign([Place(*source)])

    def _messages(self, most: int, timeout: float) -> list[Message]:
        count = min(most, _MAX_MESSAGES)
        try:
            messages: list[Message] = self._client.consume(count, 0)
            if not messages and timeout > 0:
                first = self._first_message(timeout)  # `consume` would wait until it has `count` messages
                messages = [] if first is None else [first, *self._client.consume(count - 1, 0)]
        except KafkaException as error:
            raise error_of("Reading failed", error) from None
        return messages

    def _first_message(self, timeout: float) -> Message | None:
        """Return the next message; None after `timeout`. The client cannot be woken, so it waits in short parts."""
        until = monotonic() + timeout
        while (seconds := until - monotonic()) > 0 and not self._wakeup.is_set():
            if (message := self._client.poll(min(seconds, _WAKEUP_CHECK_S))) is not None:
                return message
        return None

    def wakeup(self) -> None:
        """Let the `poll` that waits, or the next one that would wait, return at once; callable from any thread."""
        self._wakeup.set()

    def _take_messages(self, messages: list[Message]) -> list[Batch]:
        """Return the rows that `poll` may return; rows of paused partitions are buffered, events are handled."""
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
            self._take_event(event)
        return batches

    def _current(self, batches: Iterable[Batch]) -> Iterable[Batch]:
        """Leave out rows that were fetched before a partition was dropped or another position was sought."""
        for batch in batches:
            if batch.source in self._fetching:
                start = int(batch.offsets.searchsorted(self._fetched[batch.source]))
                if start < len(batch):
                    yield batch.slice(start, len(batch)) if start else batch

    def _buffer(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            buffered = self._buffered.setdefault(batch.source, deque())
            buffered.append(batch)
            if batch.source in self._paused and sum(map(len, buffered)) > _MAX_HELD_ROWS:
                self._stop(batch.source)

    def _take_buffered(self, most: int) -> list[Batch]:
        taken: list[Batch] = []
        sources = [source for source, batches in self._buffered.items() if batches and source not in self._paused]
        for source in sources:
            while most > 0 and (batch := self._next_buffered(source, most)) is not None:
                taken.append(batch)
                most -= len(batch)
        return taken

    def _next_buffered(self, source: TopicPartition, most: int) -> Batch | None:
        """Remove and return the next buffered rows of a partition, at most `most`."""
        batches = self._buffered.get(source)
        if not batches:
            return None
        batch = batches.popleft()
        if len(batch) > most:
            batches.appendleft(batch.slice(most, len(batch)))
            return batch.slice(0, most)
        return batch

    def _before(self, source: TopicPartition, end: int) -> Batch | None:
        batches = self._buffered.get(source)
        return self._next_buffered(source, int(batches[0].offsets.searchsorted(end))) if batches else None

    def _take_event(self, event: Message) -> None:
        """Note the end of a partition, or an error."""
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
    """Return the offsets of messages, which ascend, mostly without a gap."""
    first = messages[0].offset()
    last = messages[-1].offset()
    count = len(messages)
    if last - first == count - 1:
        return np.arange(first, last + 1, dtype=np.int64)
    return np.fromiter(map(Message.offset, messages), np.int64, count)

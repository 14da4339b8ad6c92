"""`KafkaConsumer`: assigned partitions of a cluster, their positions, and what was fetched of them.

The client gets and loses partitions when `poll` is called: `assign`, `seek`, `pause` and `resume` note what is wanted.
A position moves past transaction markers by the client's events of an end.
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
from kstreams.log.kafka.connection import TIMEOUT_S, Connection, partitions_told
from kstreams.log.kafka.failures import log_error, raised
from kstreams.os.forks import of_one_process

_TIME = itemgetter(1)
_READ = {
    "group.id": "kstreams",  # the client asks for one; nobody joins it
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "queued.min.messages": 100_000,
    "fetch.wait.max.ms": 100,  # a partition's end is known when an answer is empty: half a second later by default
    "fetch.queue.backoff.ms": 5,  # the default, a second, makes reading eight times slower
}
_OURS = {"enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": True}
_MESSAGES = 5_000  # of one call of the client
_NAP_S = 0.004  # how soon a reader that waits notices that it is woken
_ASK_S = 1.0  # for where a topic is
_MOST_HELD = 10_000  # rows of a paused partition; then the client stops to fetch it
Begins = Callable[[Collection[TopicPartition]], dict[TopicPartition, int]]
_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


class KafkaConsumer:
    """See `kstreams.log.api.Consumer`.

    Parameters
    ----------
    connection : Connection
    config : mapping or None
        Settings of Kafka's consumer, or of librdkafka.
    """

    def __init__(self, connection: Connection, config: Mapping[str, Any] | None = None) -> None:
        given = {**_READ, **(config or {})}
        given.pop("max.poll.records", None)  # `poll` is told
        if given["auto.offset.reset"] == "none":
            given["auto.offset.reset"] = "error"
        self._connection = connection
        self._client = connection.client("consumer", lambda full: Client({**full, **_OURS}), given)
        self._is_committed_only = given["isolation.level"] == "read_committed"
        self._fetched: dict[TopicPartition, int] = {}  # the next offset that the client is to give
        self._held: dict[TopicPartition, deque[Batch]] = {}  # given by the client, and not yet by `poll`
        self._reading: set[TopicPartition] = set()  # what the client has
        self._told: dict[str, int] = {}  # how many partitions of topics the client knows
        self._paused: set[TopicPartition] = set()
        self._ended: set[TopicPartition] = set()
        self._failure: LogError | None = None
        self._woken = threading.Event()
        of_one_process(self, "This consumer", LogError)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these; new ones start at the beginning of the log."""
        self._assign(partitions, self._connection.beginnings)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return frozenset(self._fetched)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from `offset`."""
        self._failure = None
        if offset < 0:
            raise LogError(f"An offset is at least 0, not {offset}.")
        source = self._known(partition)
        if offset == self.position(source) and source in self._reading:
            return
        self._stop(source)
        self._held.pop(source, None)
        self._fetched[source] = offset

    def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Go to the first record that is there; of all assigned partitions when none is named."""
        self._seek_all(self._connection.beginnings(map(self._known, partitions or self._fetched)))

    def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Go to where the next record will be; of all assigned partitions when none is named."""
        self._seek_all(self.end_offsets([self._known(source) for source in partitions or self._fetched]))

    def seek_to_time(self, partition: TopicPartition, time: Time) -> None:
        """Go to the first record whose timestamp is at or after `time`, or to the end if there is none."""
        self._seek_all(self._offsets_since([self._known(partition)], time_ms(time)))

    def position(self, partition: TopicPartition) -> int:
        """Offset of the next record that `poll` would look at."""
        source = self._known(partition)
        held = self._held.get(source)
        return int(held[0].offsets[0]) if held else self._fetched[source]

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Up to where this consumer could read now: the cluster is asked."""
        return self._connection.ends(partitions, committed_only=self._is_committed_only)

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Whether the last poll has come to where the partition ended then."""
        source = self._known(partition)
        return source in self._ended and not self._held.get(source)

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """What was fetched, at most `max_records` rows; waits up to `timeout` seconds when there is nothing."""
        self._raise_failure()
        self._start(self._fetched.keys() - self._paused)
        found = self._take_held(max_records)
        left = max_records - sum(map(len, found))
        until = monotonic() + timeout
        while left > 0:
            messages = self._messages(left, 0 if found else until - monotonic())
            if not messages:
                break
            given = self._sorted(messages)
            found += given
            left -= sum(map(len, given))
        self._woken.clear()
        if not found:
            self._raise_failure()
        return found

    def skim(self, partition: TopicPartition, end: int) -> Span | None:
        """The next records before `end`, read and counted; other partitions wait meanwhile."""
        source = self._known(partition)
        for other in self._reading - {source}:
            self._stop(other)
        self._start({source})
        until = monotonic() + TIMEOUT_S
        while self.position(source) < end:
            self._raise_failure()
            if batch := self._before(source, end):
                return Span(int(batch.offsets[0]), self.position(source), len(batch), max(batch.timestamps.to_pylist()))
            if source in self._ended or self.position(source) >= end:
                return None
            if monotonic() > until:
                raise LogError(f"{source}: the cluster gave no records and no end within {TIMEOUT_S} s.")
            self._hold(self._sorted(self._messages(_MESSAGES, 0.1)))
        return None

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Let `poll` pass over these until `resume`."""
        self._paused.update(map(self._known, partitions))

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Let `poll` read these again."""
        self._paused.difference_update(partitions)

    def close(self) -> None:
        """Release the client; batches that were polled stay valid."""
        self._fetched.clear()
        self._client.close()

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _assign(self, partitions: Collection[TopicPartition], begins: Begins) -> None:
        wanted = [TopicPartition(*source) for source in partitions]
        self._connection.require(wanted)
        new = [source for source in wanted if source not in self._fetched]
        starts = begins(new) if new else {}
        for source in self._fetched.keys() - set(wanted):
            self._stop(source)
            del self._fetched[source]
            self._held.pop(source, None)
        self._paused &= set(wanted)
        self._fetched |= starts

    def _offsets_since(self, sources: Collection[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        """The first offset at or after a time, or the end if there is none."""
        spec = OffsetSpec.for_timestamp(max(0, timestamp_ms))
        found = self._connection.offsets(sources, spec, committed_only=self._is_committed_only)
        none = [source for source, offset in found.items() if offset < 0]
        return found | self.end_offsets(none)

    def _start(self, wanted: Collection[TopicPartition]) -> None:
        """Let the client fetch these, each from where the last fetched record ended."""
        new = [source for source in wanted if source not in self._reading]
        if new:
            self._find_leaders(new)
            self._client.incremental_assign([Place(*source, self._fetched[source]) for source in new])
            self._reading.update(new)

    def _find_leaders(self, sources: Iterable[TopicPartition]) -> None:
        """Let the client ask where partitions are that are new to it; by itself it does so once a second."""
        for topic, partition in sorted(sources):
            at_least = partition + 1
            if self._told.get(topic, 0) < at_least:
                ask = partial(partitions_told, self._client, topic, _ASK_S)
                self._told[topic] = max(at_least, self._connection.learnt_partitions(topic, at_least, ask))

    def _stop(self, source: TopicPartition) -> None:
        """Let the client drop a partition with what it has fetched of it."""
        self._ended.discard(source)
        if source in self._reading:
            self._reading.discard(source)
            self._client.incremental_unassign([Place(*source)])

    def _messages(self, most: int, timeout: float) -> list[Any]:
        try:
            found: list[Any] = self._client.consume(min(most, _MESSAGES), 0)
            if not found and timeout > 0:
                first = self._first(timeout)  # `consume` would wait until it has all
                found = [] if first is None else [first, *self._client.consume(min(most, _MESSAGES) - 1, 0)]
        except KafkaException as error:
            raise raised("Reading failed", error) from None
        return found

    def _first(self, timeout: float) -> Any:
        """The next message, or None. Nobody can wake the client, so it waits in short parts."""
        until = monotonic() + timeout
        while (left := until - monotonic()) > 0 and not self._woken.is_set():
            if (message := self._client.poll(min(left, _NAP_S))) is not None:
                return message
        return None

    def wakeup(self) -> None:
        """Let the `poll` that waits, or the next one that would, return with what there is; from any thread."""
        self._woken.set()

    def _sorted(self, messages: list[Any]) -> list[Batch]:
        """The rows that `poll` may give now; what is of paused partitions is held, events are noted."""
        records, events = split_events(messages)
        given = []
        for batch in self._current(batches_of(records) if records else []):
            self._fetched[batch.source] = int(batch.offsets[-1]) + 1
            self._ended.discard(batch.source)
            if batch.source in self._paused:
                self._hold([batch])
            else:
                given.append(batch)
        for event in events:
            self._note(event)
        return given

    def _current(self, batches: Iterable[Batch]) -> Iterable[Batch]:
        """Without what was fetched before a partition was dropped or another position sought."""
        for batch in batches:
            if batch.source in self._reading:
                start = int(batch.offsets.searchsorted(self._fetched[batch.source]))
                if start < len(batch):
                    yield batch.slice(start, len(batch)) if start else batch

    def _hold(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            held = self._held.setdefault(batch.source, deque())
            held.append(batch)
            if batch.source in self._paused and sum(map(len, held)) > _MOST_HELD:
                self._stop(batch.source)

    def _take_held(self, most: int) -> list[Batch]:
        found: list[Batch] = []
        for source in [each for each, held in self._held.items() if held and each not in self._paused]:
            while most > 0 and (batch := self._next_held(source, most)) is not None:
                found.append(batch)
                most -= len(batch)
        return found

    def _next_held(self, source: TopicPartition, most: int) -> Batch | None:
        """The next held rows of a partition, at most so many."""
        held = self._held.get(source)
        if not held:
            return None
        batch = held.popleft()
        if len(batch) > most:
            held.appendleft(batch.slice(most, len(batch)))
            return batch.slice(0, most)
        return batch

    def _before(self, source: TopicPartition, end: int) -> Batch | None:
        held = self._held.get(source)
        return self._next_held(source, int(held[0].offsets.searchsorted(end))) if held else None

    def _note(self, event: Any) -> None:
        """An end was reached, or something went wrong."""
        source = TopicPartition(event.topic(), event.partition())
        error = event.error()
        if source not in self._reading:
            return
        if error.code() == KafkaError._PARTITION_EOF:
            if event.offset() >= self._fetched[source]:
                self._fetched[source] = event.offset()
                self._ended.add(source)
        elif error.code() in _GONE:
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

    def _known(self, source: TopicPartition) -> TopicPartition:
        if source not in self._fetched:
            raise LogError(f"{TopicPartition(*source)} is not assigned to this consumer: assign it first.")
        return TopicPartition(*source)


def batches_of(messages: Sequence[Any]) -> list[Batch]:
    """Messages without errors as batches: each partition that occurs has one, in the order of its offsets."""
    if len(set(map(Message.partition, messages))) == len(set(map(Message.topic, messages))) == 1:
        return [_batch(TopicPartition(messages[0].topic(), messages[0].partition()), messages)]
    sources = list(zip(map(Message.topic, messages), map(Message.partition, messages), strict=True))
    found: dict[tuple[str, int], list[Any]] = {}
    others = compress(range(1, len(sources)), map(ne, sources[1:], sources))
    for start, stop in pairwise((0, *others, len(sources))):
        found.setdefault(sources[start], []).extend(messages[start:stop])
    return [_batch(TopicPartition(*source), each) for source, each in found.items()]


def split_events(messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Messages that hold records, and those that hold an error or tell of an end."""
    if not any(map(Message.error, messages)):
        return list(messages), []
    errors = list(map(Message.error, messages))
    return list(compress(messages, [error is None for error in errors])), list(compress(messages, errors))


def _batch(source: TopicPartition, messages: Sequence[Any]) -> Batch:
    count = len(messages)
    headers = list(map(Message.headers, messages))
    return Batch(
        source,
        _offsets(messages),
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        pa.array(np.fromiter(map(_TIME, map(Message.timestamp, messages)), np.int64, count)),
        headers_column([each or () for each in headers]) if any(headers) else None,
    )


def _offsets(messages: Sequence[Any]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """They ascend: from first to last mostly without a gap."""
    first = messages[0].offset()
    last = messages[-1].offset()
    count = len(messages)
    if last - first == count - 1:
        return np.arange(first, last + 1, dtype=np.int64)
    return np.fromiter(map(Message.offset, messages), np.int64, count)

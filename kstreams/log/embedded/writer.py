"""`Writer`: appends a producer's batches, with one appender per partition and the stamp of the open transaction."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Delivery, GroupMetadata, OnDelivery
from kstreams.log.embedded.catalogue import transactions
from kstreams.log.embedded.catalogue.catalogue import Topic
from kstreams.log.embedded.groups.member_files import AppendGuard
from kstreams.log.embedded.resources import LogResources
from kstreams.log.embedded.segments import frame
from kstreams.log.embedded.segments.appender import Appender
from kstreams.log.embedded.segments.topic_settings import TopicSettings
from kstreams.log.record_checks import TopicFacts

_SEQUENCES = 1 << 31


class DeliveryCallback:
    """A callback, and the delivery that it is called with; None until the delivery is known."""

    __slots__ = ("delivery", "on_delivery")

    def __init__(self, on_delivery: OnDelivery) -> None:
        self.on_delivery = on_delivery
        self.delivery: Delivery | None = None


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


class CachedTopic(NamedTuple):
    """A topic and its settings as they were when the catalogue was last read."""

    topic: Topic
    settings: TopicSettings
    facts: TopicFacts
    read_ms: int  # by the machine's uptime


class UnconfirmedAppend(NamedTuple):
    """An append that was started, and is not known to have ended."""

    sequence: int
    batches: Sequence[PendingBatch]


class EncodedBatches(NamedTuple):
    """Batches that can be written, with their frames, and batches that cannot, with the reason."""

    batches: Sequence[PendingBatch]
    bodies: list[frame.FrameBody]
    refused: list[tuple[PendingBatch, frame.UnwritableError]]


class Writer:
    """Appends pending batches to partitions.

    Parameters
    ----------
    home : LogResources
    compression : str
        For topics with `compression.type=producer`.
    max_age_ms : int
        Time after which a topic's settings are read again.
    """

    def __init__(self, home: LogResources, compression: str, max_age_ms: int) -> None:
        self._home = home
        self._compression = compression
        self._max_age_ms = max_age_ms
        self._topics: dict[str, CachedTopic] = {}
        self._appenders: dict[TopicPartition, Appender] = {}
        self._transaction_partitions: set[TopicPartition] = set()
        self._rolled_topics: dict[str, Topic] = {}
        self._stamp = frame.UNSTAMPED
        self._transactional_id = ""
        self._guard: AppendGuard | None = None
        self._sequence = uuid.uuid4().int % _SEQUENCES
        self._unconfirmed: dict[TopicPartition, UnconfirmedAppend] = {}

    def begin(self, producer: transactions.ProducerId, transaction: int) -> None:
        """Write to a transaction from now on."""
        self._stamp = frame.TransactionStamp(producer.id, transaction, producer.epoch)
        self._transactional_id = producer.transactional_id
        self._transaction_partitions.clear()
        self._unconfirmed.clear()

    def end(self) -> None:
        """Write outside of the transaction, which is over."""
        self._stamp = frame.UNSTAMPED

    def write_for(self, member: GroupMetadata) -> None:
        """Append records outside of transactions only while the member is in its group."""
        if self._guard is not None and self._guard.member == member:
            return
        self._close_guard()
        self._guard = AppendGuard(self._home, member) if member.member else None

    def topic(self, name: str, partition: int | None = None) -> CachedTopic:
        """Return a topic and its settings; UnknownTopicError if the topic or the partition does not exist."""
        cached = self._topics.get(name)
        if cached is None or self._home.clock.uptime_ms() - cached.read_ms >= self._max_age_ms:
            cached = self._read_topic(name)
        if partition is not None and not 0 <= partition < cached.topic.partitions:
            cached = self._read_topic(name)
            cached.topic.require(partition)
        return cached

    def _read_topic(self, name: str) -> CachedTopic:
        topic = self._home.catalogue.topic(name)
        settings = TopicSettings.of(topic.config)
        read = CachedTopic(topic, settings, settings.facts(topic.partitions), self._home.clock.uptime_ms())
        cached = self._topics.get(name)
        if cached is not None and cached.topic.id != topic.id:
            return cached  # the topic was deleted and created again: an append to the old one raises
        self._topics[name] = read
        return read

    def write(self, source: TopicPartition, batches: Sequence[PendingBatch], timeout: float | None) -> None:
        """Append batches to a partition as one, and complete their callbacks.

        Raises
        ------
        UnwritableError
            Some batches can never be written. They are completed with the error; the others are in the log.
        LogError
            Nothing was written, and no callback is completed.
        """
        topic = self.topic(source.topic)
        self._confirm(source, timeout)
        pending = [batch for batch in batches if not batch.completed]
        if not pending:
            return
        encoded = self._encode(pending, topic)
        if encoded.batches:
            self._append(topic, source, encoded, timeout)
        for batch, error in encoded.refused:
            batch.complete(-1, error)
        self._clean_rolled_topics()
        if encoded.refused:
            raise encoded.refused[0][1]

    def sync(self) -> None:
        """Make the records of the transaction durable."""
        for source in self._transaction_partitions:
            self._appenders[source].sync()

    def close(self) -> None:
        """Close the files."""
        for appender in self._appenders.values():
            appender.close()
        self._appenders.clear()
        self._close_guard()

    def _confirm(self, source: TopicPartition, timeout: float | None) -> None:
        """Complete the batches of an interrupted append that did write them, so that they are not written twice."""
        unconfirmed = self._unconfirmed.pop(source, None)
        appender = self._appenders.get(source)
        if unconfirmed is None or appender is None:
            return
        try:
            offset = appender.written_before(unconfirmed.sequence, timeout)
        except BaseException:
            self._unconfirmed[source] = unconfirmed
            raise
        if offset is not None:
            _complete(unconfirmed.batches, offset)

    def _encode(self, pending: Sequence[PendingBatch], topic: CachedTopic) -> EncodedBatches:
        settings = topic.settings
        compression = self._compression if settings.compression == "producer" else settings.compression
        appended_ms = self._home.clock.wall_ms() if settings.log_append_time else None
        encode = functools.partial(
            frame.frame_bodies, compression=compression, facts=topic.facts, appended_ms=appended_ms
        )
        try:
            return EncodedBatches(pending, encode([batch.batch for batch in pending]), [])
        except frame.UnwritableError:
            pass  # encoded one by one below, to find the batches that can be written
        writable: list[PendingBatch] = []
        encoded = EncodedBatches(writable, [], [])
        for batch in pending:
            try:
                encoded.bodies.extend(encode([batch.batch]))
                writable.append(batch)
            except frame.UnwritableError as error:
                encoded.refused.append((batch, error))
        return encoded

    def _append(
        self, topic: CachedTopic, source: TopicPartition, encoded: EncodedBatches, timeout: float | None
    ) -> None:
        self._sequence = self._sequence % _SEQUENCES + 1
        self._unconfirmed[source] = UnconfirmedAppend(self._sequence, encoded.batches)
        try:
            offset = self._append_frames(topic, source, encoded.bodies, timeout)
        except UnknownTopicError:
            self._forget(source.topic)
            raise
        except Exception:
            del self._unconfirmed[source]  # the appender has written nothing
            raise
        _complete(encoded.batches, offset)
        del self._unconfirmed[source]

    def _append_frames(
        self, topic: CachedTopic, source: TopicPartition, bodies: list[frame.FrameBody], timeout: float | None
    ) -> int:
        appender = self._appenders.get(source)
        if appender is None:
            appender = self._appenders[source] = self._open(topic, source)
        stamp = self._stamp._replace(sequence=self._sequence)
        if not stamp.transaction_id:
            guard = nullcontext if self._guard is None else self._guard.appending
            return appender.append(bodies, stamp, timeout=timeout, guard=guard)
        is_new = source not in self._transaction_partitions
        before = functools.partial(self._add_to_transaction, topic.topic, source) if is_new else None
        return appender.append(bodies, stamp, timeout=timeout, before=before, sync=False)

    def _close_guard(self) -> None:
        if self._guard is not None:
            self._guard.close()

    def _clean_rolled_topics(self) -> None:
        # After the batches are completed: cleaning may take long, and may fail.
        while self._rolled_topics:
            self._home.after_roll(self._rolled_topics.popitem()[1])

    def _add_to_transaction(self, topic: Topic, source: TopicPartition, first_offset: int) -> None:
        transactions.add_partition(
            self._home.catalogue,
            self._stamp.transaction_id,
            topic.id,
            source.partition,
            first_offset,
            self._transactional_id,
        )
        self._transaction_partitions.add(source)

    def _open(self, topic: CachedTopic, source: TopicPartition) -> Appender:
        home = self._home
        partition = home.partition(topic.topic, source.partition)
        on_roll = functools.partial(self._rolled_topics.__setitem__, topic.topic.name, topic.topic)
        return Appender(partition, topic.settings.limits, home.clock, home.durability, on_roll)

    def _forget(self, name: str) -> None:
        self._topics.pop(name, None)
        for source in [source for source in self._appenders if source.topic == name]:
            self._appenders.pop(source).close()
            self._unconfirmed.pop(source, None)


def _complete(batches: Sequence[PendingBatch], offset: int) -> None:
    for batch in batches:
        batch.complete(offset, None)
        offset += len(batch.batch)

"""Writing a producer's batches: one appender per partition, the topics' settings, the stamp of the open transaction."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from kstreams.errors import UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata
from kstreams.log.embedded.buffer import PendingBatch
from kstreams.log.embedded.catalogue import transactions
from kstreams.log.embedded.catalogue.catalogue import Topic
from kstreams.log.embedded.groups.member_files import AppendGuard
from kstreams.log.embedded.resources import LogResources
from kstreams.log.embedded.segments.appender import Appender
from kstreams.log.embedded.segments.frame import UNSTAMPED, FrameBody, TransactionStamp
from kstreams.log.embedded.segments.framing import UnwritableError, frame_bodies
from kstreams.log.embedded.segments.topic_settings import TopicSettings

_SEQUENCES = 1 << 31


class KnownTopic(NamedTuple):
    """A topic as it was at a time."""

    topic: Topic
    settings: TopicSettings
    since_ms: int


class Writer:
    """Appends pending batches to partitions.

    Parameters
    ----------
    home : LogResources
    compression : str
        For topics that leave it to the producer.
    max_age_ms : int
        After how long it looks again whether a topic has changed.
    """

    def __init__(self, home: LogResources, compression: str, max_age_ms: int) -> None:
        self._home = home
        self._compression = compression
        self._max_age_ms = max_age_ms
        self._topics: dict[str, KnownTopic] = {}
        self._appenders: dict[TopicPartition, Appender] = {}
        self._touched: set[TopicPartition] = set()
        self._rolled: dict[str, Topic] = {}
        self._stamp = UNSTAMPED
        self._who = ""
        self._guard: AppendGuard | None = None
        self._sequence = uuid.uuid4().int % _SEQUENCES
        self._begun: dict[TopicPartition, tuple[int, Sequence[PendingBatch]]] = {}  # appends, until their end is known

    def begin(self, producer: transactions.ProducerId, transaction: int) -> None:
        """What is written from now on belongs to a transaction."""
        self._stamp = TransactionStamp(producer.id, transaction, producer.epoch)
        self._who = producer.transactional_id
        self._touched.clear()
        self._begun.clear()

    def end(self) -> None:
        """The transaction is over."""
        self._stamp = UNSTAMPED

    def write_for(self, member: GroupMetadata) -> None:
        """Let what is written without a transaction land only while the member is in its group."""
        if self._guard is not None and self._guard.who == member:
            return
        self._release_guard()
        self._guard = AppendGuard(self._home, member) if member.member else None

    def topic(self, name: str, partition: int | None = None) -> KnownTopic:
        """A topic and its settings; UnknownTopicError for one or a partition of it that is not there."""
        known = self._topics.get(name)
        if known is None or self._home.clock.uptime_ms() - known.since_ms >= self._max_age_ms:
            known = self._look_up(name)
        if partition is not None and not 0 <= partition < known.topic.partitions:
            known = self._look_up(name)
            known.topic.require(partition)
        return known

    def _look_up(self, name: str) -> KnownTopic:
        topic = self._home.catalogue.topic(name)
        known = KnownTopic(topic, TopicSettings.of(topic.config), self._home.clock.uptime_ms())
        before = self._topics.get(name)
        if before is not None and before.topic.id != topic.id:
            return before  # it was deleted and made anew: who writes to the old one is told
        self._topics[name] = known
        return known

    def write(self, source: TopicPartition, waiting: Sequence[PendingBatch], timeout: float | None) -> None:
        """Append batches as one and complete their callbacks.

        Raises
        ------
        UnwritableError
            For batches that can never be written; they are completed with the error, and the others are in the log.
        LogError
            Nothing was written, and no callback is completed.
        """
        topic, settings, _ = self.topic(source.topic)
        self._end_begun(source, timeout)
        if left := [pending for pending in waiting if not pending.completed]:
            self._write(source, topic, settings, left, timeout)

    def _write(
        self,
        source: TopicPartition,
        topic: Topic,
        settings: TopicSettings,
        waiting: Sequence[PendingBatch],
        timeout: float | None,
    ) -> None:
        waiting, bodies, refused = self._encode(source, waiting, settings)
        if waiting:
            self._sequence = self._sequence % _SEQUENCES + 1
            self._begun[source] = self._sequence, waiting
            try:
                offset = self._append(topic, source, settings, bodies, timeout)
            except UnknownTopicError:
                self._forget(source.topic)
                raise
            except Exception:
                del self._begun[source]  # nothing of it was written
                raise
            _complete(waiting, offset)
            del self._begun[source]
        for pending, error in refused:
            pending.complete(-1, error)
        self._clean_rolled()
        if refused:
            raise refused[0][1]

    def _end_begun(self, source: TopicPartition, timeout: float | None) -> None:
        """Complete what an append has written that was interrupted: it is not to be written again."""
        if source in self._begun:
            sequence, waiting = self._begun[source]
            offset = self._appenders[source].written_before(sequence, timeout) if source in self._appenders else None
            if offset is not None:
                _complete(waiting, offset)
            del self._begun[source]

    def sync(self) -> None:
        """Make what the transaction wrote durable."""
        for source in self._touched:
            self._appenders[source].sync()

    def close(self) -> None:
        """Release the files."""
        for appender in self._appenders.values():
            appender.close()
        self._appenders.clear()
        self._release_guard()

    def _encode(
        self, source: TopicPartition, waiting: Sequence[PendingBatch], settings: TopicSettings
    ) -> tuple[Sequence[PendingBatch], list[FrameBody], list[tuple[PendingBatch, UnwritableError]]]:
        """The batches that can be written, their frames, and the batches that cannot, with the reason."""
        compression = self._compression if settings.compression == "producer" else settings.compression
        appended_ms = self._home.clock.wall_ms() if settings.log_append_time else None
        encode = functools.partial(frame_bodies, compression=compression, settings=settings, appended_ms=appended_ms)
        try:
            return waiting, encode([pending.batch for pending in waiting]), []
        except UnwritableError:
            sound = []
            bodies = []
            refused = []
        for pending in waiting:
            try:
                bodies += encode([pending.batch])
                sound.append(pending)
            except UnwritableError as error:
                refused.append((pending, error))
        return sound, bodies, refused

    def _append(
        self,
        topic: Topic,
        source: TopicPartition,
        settings: TopicSettings,
        bodies: list[FrameBody],
        timeout: float | None,
    ) -> int:
        appender = self._appenders.get(source)
        if appender is None:
            appender = self._appenders[source] = self._open(topic, source, settings)
        if not self._stamp.transaction_id:
            guard = nullcontext if self._guard is None else self._guard.held
            return appender.append(bodies, TransactionStamp(sequence=self._sequence), timeout=timeout, guard=guard)
        before = None if source in self._touched else functools.partial(self._enlist, topic, source)
        stamp = self._stamp._replace(sequence=self._sequence)
        return appender.append(bodies, stamp, timeout=timeout, before=before, sync=False)

    def _release_guard(self) -> None:
        if self._guard is not None:
            self._guard.close()

    def _clean_rolled(self) -> None:
        # When all who wait know where their records are: however long it takes, and whatever happens in it.
        while self._rolled:
            self._home.after_roll(self._rolled.popitem()[1])

    def _enlist(self, topic: Topic, source: TopicPartition, first_offset: int) -> None:
        transaction = self._stamp.transaction_id
        transactions.add_partition(
            self._home.catalogue, transaction, topic.id, source.partition, first_offset, self._who
        )
        self._touched.add(source)

    def _open(self, topic: Topic, source: TopicPartition, settings: TopicSettings) -> Appender:
        home = self._home
        partition = home.partition(topic, source.partition)
        on_roll = functools.partial(self._rolled.__setitem__, topic.name, topic)
        return Appender(partition, settings.limits, home.clock, home.durability, on_roll)

    def _forget(self, name: str) -> None:
        self._topics.pop(name, None)
        for source in [source for source in self._appenders if source.topic == name]:
            self._appenders.pop(source).close()
            self._begun.pop(source, None)


def _complete(written: Sequence[PendingBatch], offset: int) -> None:
    for pending in written:
        pending.complete(offset, None)
        offset += len(pending.batch)

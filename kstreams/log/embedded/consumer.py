"""`EmbeddedConsumer`: assigned partitions of the embedded log, their positions, and commits for a group."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any

from kstreams.config.key import Key
from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.durations import Time, time_ms, to_ms
from kstreams.log.api import (
    CONSUMER_BYTE_RATE,
    GroupMetadata,
    OffsetAndMetadata,
    OnCommit,
    PartitionsListener,
    Span,
    Throttling,
)
from kstreams.log.embedded.catalogue.catalogue import commit_offsets, committed_offsets
from kstreams.log.embedded.catalogue.transactions import TransactionState, transaction_state
from kstreams.log.embedded.groups.membership import Membership, SubscribedTopics
from kstreams.log.embedded.quotas import ClientQuota
from kstreams.log.embedded.resources import LogResources, stable_end
from kstreams.log.embedded.segments.reader import PartitionReader
from kstreams.log.groups.group_consumers import (
    MEMBER_SETTINGS,
    CommitCallbacks,
    RebalanceListeners,
    check_times,
    nothing_committed,
)
from kstreams.log.settings import QUOTA_DELAYS, QUOTA_KEYS, choice, keys, read_settings
from kstreams.os.forks import of_one_process

CONSUMER_SETTINGS = MEMBER_SETTINGS | keys(
    Key(
        "isolation.level",
        choice("read_committed", "read_uncommitted"),
        "read_committed",
        "Whether records of open and aborted transactions are hidden.",
    ),
    QUOTA_KEYS[1],
)
_MAX_KNOWN_STATES = 10_000
# seconds between two reads of an idle consumer
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.01
_GROUP_CHECK_S = 0.05  # time between two checks of the group, while `poll` waits for records


class EmbeddedConsumer:
    """See `kstreams.log.api.Consumer`, and with a `group.id` `kstreams.log.api.GroupConsumer`.

    Parameters
    ----------
    home : LogResources
    config : mapping or None
        `isolation.level` and `auto.offset.reset` (where to start without a committed offset, and where to go on if the
        position is no longer in the log; with a duration, reading goes on at the first record).
        `client.id`, whose quota may delay `poll`, and `quota.delays`.
        Of a member: `group.id`, `group.instance.id`, `client.id`, `session.timeout.ms`, `heartbeat.interval.ms`,
        `max.poll.interval.ms`, `partition.assignment.strategy` (`cooperative-sticky`; or any of `range`, `roundrobin`,
        `sticky`) and `metadata.max.age.ms` (time after which it looks for new topics).
    """

    def __init__(self, home: LogResources, config: Mapping[str, Any] | None = None) -> None:
        self._home = home
        self._settings = read_settings("consumer", CONSUMER_SETTINGS, config)
        check_times(self._settings)
        self._readers: dict[TopicPartition, PartitionReader] = {}
        self._paused: set[TopicPartition] = set()
        self._known_states: dict[int, TransactionState] = {}
        self._failure: LogError | None = None
        self._turn = 0
        self._wakeup = threading.Event()
        self._at_end: set[TopicPartition] = set()
        self._group: str | None = self._settings["group.id"]
        of_one_process(self, "This consumer", LogError)
        self._membership: Membership | None = None
        self._commit_callbacks = CommitCallbacks(self._group)
        client_id = self._settings["client.id"] or ""
        delays = self._settings[QUOTA_DELAYS]
        self._quota = ClientQuota(home, client_id, CONSUMER_BYTE_RATE, delays=delays)

    def subscribe(
        self,
        topics: Collection[str] | re.Pattern[str],
        *,
        on_assigned: PartitionsListener | None = None,
        on_revoked: PartitionsListener | None = None,
        on_lost: PartitionsListener | None = None,
    ) -> None:
        """Read the partitions of these topics that the group assigns, from the next `poll` on."""
        self._committer()
        self.unsubscribe()
        listeners = RebalanceListeners(on_assigned, on_revoked, on_lost)
        watch = SubscribedTopics(self._home.catalogue, self._home.clock, topics, self._settings["metadata.max.age.ms"])
        self._membership = Membership(self._home, self._settings, self, watch, listeners)

    def unsubscribe(self) -> None:
        """Leave the group, and read nothing; a static member stays in the group until its session ends."""
        self._leave(for_good=False)

    def leave(self) -> None:
        """Leave the group at once, also as a static member, and read nothing."""
        self._leave(for_good=True)

    def _leave(self, *, for_good: bool) -> None:
        try:
            if self._membership is not None:
                self._membership.leave(for_good=for_good)
        finally:
            self._membership = None
            self._assign([])

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commit these offsets, or the positions of all assigned partitions, as one."""
        commit_offsets(self._home.catalogue, self._committer(), self._positions() if offsets is None else offsets)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit; the next `poll` calls `on_commit` with the outcome. Without `on_commit`, a failure is logged."""
        self._commit_callbacks.commit(self.commit, self._positions() if offsets is None else dict(offsets), on_commit)

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without an offset are left out."""
        return committed_offsets(self._home.catalogue, self._committer().group, partitions)

    def group_metadata(self) -> GroupMetadata:
        """Return the metadata of this member, for `Producer.commit_transaction`."""
        return self._committer()

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions; new ones start at the beginning of the log."""
        if self._membership is not None:
            raise LogError("This consumer has subscribed, so its group assigns: unsubscribe first.")
        self._assign(partitions)

    def take_over(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions; new ones start at the committed offset, else by `auto.offset.reset`."""
        added = [source for source in partitions if source not in self._readers]
        committed = self.committed(added)
        self._require_committed(source for source in added if source not in committed)
        self._assign(partitions)
        for source in added:
            self._seek_start(source, committed.get(source))

    def _assign(self, partitions: Collection[TopicPartition]) -> None:
        existing = {source: reader for source, reader in self._readers.items() if not reader.partition.is_deleted()}
        assigned = [TopicPartition(*source) for source in partitions]
        opened = {source: existing.get(source) or self._open(source) for source in assigned}
        for source, reader in self._readers.items():
            if opened.get(source) is not reader:
                reader.close()
        self._paused &= opened.keys()
        self._at_end.intersection_update(existing)
        self._readers = opened

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read."""
        return frozenset(self._readers)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from `offset`."""
        self._failure = None
        if offset < 0:
            raise LogError(f"An offset is at least 0, not {offset}.")
        self._reader(partition).seek(offset)
        self._at_end.discard(partition)

    def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Go to the first record of these partitions; without names, of all assigned partitions."""
        for source in partitions or self._readers:
            reader = self._reader(source)
            reader.seek(reader.partition.head().start_offset)
            self._at_end.discard(source)

    def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Go to the end of these partitions; without names, of all assigned partitions."""
        for source in partitions or self._readers:
            self._reader(source).seek(self._end(source))

    def seek_to_time(self, partition: TopicPartition, time: Time) -> None:
        """Go to the first record whose timestamp is at or after `time`, or to the end if there is none."""
        reader = self._reader(partition)
        end = self._end(partition)
        offset = reader.offset_at_time(time_ms(time))
        reader.seek(end if offset is None else min(offset, end))
        self._at_end.discard(partition)

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that `poll` would read."""
        return self._reader(partition).position

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets up to which this consumer could read now."""
        return {source: self._end(source) for source in partitions}

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return whether the last poll reached the end of the partition."""
        return self._reader(partition).partition.source in self._at_end

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """Return rows, at most `max_records`; waits up to `timeout` seconds if there are none.

        While the client id is over its quota there are none, and `is_at_end` is false.

        Raises
        ------
        CorruptLogError
            When the next frame is damaged; names the file, the byte and the offset.
        """
        try:
            return self._polled(timeout, max_records)
        finally:
            self._wakeup.clear()

    def _polled(self, timeout: float, max_records: int) -> list[Batch]:
        if self._group is None:
            return self._wait(timeout, max_records)
        self._commit_callbacks.call()
        while True:
            timeout = timeout if self._membership is None else self._membership.poll(timeout)
            batches = self._wait(min(timeout, _GROUP_CHECK_S), max_records)
            timeout -= _GROUP_CHECK_S
            if batches or timeout <= 0 or self._wakeup.is_set():
                return batches

    def _wait(self, timeout: float, max_records: int) -> list[Batch]:
        pause = _FIRST_PAUSE
        while not (batches := self._collect(max_records)) and timeout > 0 and not self._wakeup.is_set():
            self._home.clock.sleep(min(pause, timeout), self._wakeup)
            timeout -= pause
            pause = min(pause * 2, _LONGEST_PAUSE)
        return batches

    def throttling(self) -> Throttling:
        """Return how the quota `consumer_byte_rate` of the client id has delayed this consumer."""
        return self._quota.throttling()

    def wakeup(self) -> None:
        """Let the `poll` that waits, or the next one that would wait, return at once; callable from any thread."""
        self._wakeup.set()

    def skim(self, partition: TopicPartition, end: int) -> Span | None:
        """Count and skip the next records before `end`: a frame, or the part of a frame before `end`."""
        return self._reader(partition).skim(end)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Let `poll` skip these partitions until `resume`."""
        self._paused.update(self._reader(source).partition.source for source in partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Let `poll` read these partitions again."""
        self._paused.difference_update(partitions)

    def close(self) -> None:
        """Leave the group and close the files; batches that were polled stay valid."""
        self.unsubscribe()
        self._quota.close()

    def __enter__(self) -> EmbeddedConsumer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _collect(self, max_records: int) -> list[Batch]:
        self._raise_failure()
        # Each poll starts with another partition, so that one with many records does not starve the others.
        active = [source for source in self._readers if source not in self._paused]
        if self._quota.is_delaying():
            self._at_end.difference_update(active)
            return []
        self._turn += 1
        batches: list[Batch] = []
        for i in range(len(active)):
            source = active[(i + self._turn) % len(active)]
            self._at_end.discard(source)
            try:
                read = self._readers[source].read(max_records)
            except LogError as error:
                self._failure = error  # raised by the next poll: this one returns the rows of other partitions
                break
            batches += read
            max_records -= sum(map(len, read))
            if max_records <= 0:
                break
            self._at_end.add(source)
        self._quota.count_batches(batches)
        if not batches:
            self._raise_failure()
            self._check_deleted()
        return batches

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _check_deleted(self) -> None:
        for source, reader in self._readers.items():
            if reader.partition.is_deleted():
                raise UnknownTopicError(f"The topic {source.topic!r} was deleted while it was read.")

    def _open(self, source: TopicPartition) -> PartitionReader:
        partition = self._home.partition(self._home.catalogue.topic(source.topic), source.partition)
        committed_only = self._settings["isolation.level"] == "read_committed"
        reset = self._settings["auto.offset.reset"]
        reader_reset = "earliest" if isinstance(reset, timedelta) else reset
        reader = PartitionReader(partition, self._state if committed_only else None, reader_reset)
        reader.seek(partition.head().start_offset)
        return reader

    def _seek_start(self, source: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        """Go to the offset at which a member starts to read a partition."""
        reset = self._settings["auto.offset.reset"]
        if committed is not None:
            self.seek(source, committed.offset)
        elif isinstance(reset, timedelta):
            self.seek_to_time(source, self._home.clock.wall_ms() - to_ms(reset))
        elif reset == "latest":
            self.seek_to_end([source])

    def _require_committed(self, sources: Iterable[TopicPartition]) -> None:
        if self._settings["auto.offset.reset"] == "none" and (uncommitted := sorted(sources)):
            raise LogError(nothing_committed(self._group, ", ".join(map(str, uncommitted))))

    def _committer(self) -> GroupMetadata:
        if self._group is None:
            raise LogError("A consumer subscribes and commits for a group: give it a `group.id`.")
        return GroupMetadata(self._group) if self._membership is None else self._membership.metadata()

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {source: OffsetAndMetadata(reader.position) for source, reader in self._readers.items()}

    def _reader(self, source: TopicPartition) -> PartitionReader:
        try:
            return self._readers[source]
        except KeyError:
            raise LogError(f"{TopicPartition(*source)} is not assigned to this consumer: assign it first.") from None

    def _end(self, source: TopicPartition) -> int:
        end = self._reader(source).partition.head().end_offset
        if self._settings["isolation.level"] == "read_uncommitted":
            return end
        return stable_end(self._home, self._home.catalogue.topic(source.topic), source.partition, end)

    def _state(self, transaction: int) -> TransactionState:
        state = self._known_states.get(transaction)
        if state is None:
            state = transaction_state(self._home.catalogue, transaction, self._home.clock.uptime_ms())
            if state is not TransactionState.OPEN:
                if len(self._known_states) >= _MAX_KNOWN_STATES:
                    self._known_states.clear()
                self._known_states[transaction] = state
        return state

"""The interface of every home of topics: `Log`, and its `Producer`, `Consumer`, `Admin` and `TransactionCoordinator`.

`tests/log/contract` states the invariants, which every home must satisfy. A feature of some homes is an `Ability`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.durations import Time
from kstreams.record import Headers


class Ability(Enum):
    """A feature that not every home has."""

    COMMITS_AT_ONCE = "records of a transaction are visible when its commit returns, not some time later"
    COORDINATOR = "transactions of several producers are committed as one"
    FENCED_APPENDS = "a producer's records for a member of a group are refused once the member has left its group"
    FAIR_POLLS = "each poll starts with another partition"
    FRAMES = "records lie together as they were written, and offsets count records only, not ends of transactions"
    GROUPS = "consumers with a `group.id` share partitions: a `GroupConsumer`"
    LEAVES_OF_STATIC_MEMBERS = "a static member can leave its group before its session ends"
    NEW_TOPICS_DIFFER = "a topic that was deleted and created again is distinguished from the old one"
    REFUSED_TRANSACTIONS_STAY_OPEN = "a commit that the group refused can be repeated with newer group metadata"
    TIME_ZERO = "timestamps of 0 and below are written as they are"
    TOPIC_TYPES = "topics have settings for the types of their records"
    ZERO_IN_HEADERS = "the name of a header may contain the character 0"


class OffsetAndMetadata(NamedTuple):
    """A committed position: the next offset to read, and a short text."""

    offset: int
    metadata: str = ""


class GroupMetadata(NamedTuple):
    """The identity of a commit for a group: a member in a generation; without a member, a client outside the group."""

    group: str
    member: str = ""
    generation: int = -1
    instance: str | None = None


class MemberDescription(NamedTuple):
    """A member of a group; `instance` is the `group.instance.id` of a static member."""

    id: str
    instance: str | None
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A group as its home describes it.

    `state` is Empty, PreparingRebalance, CompletingRebalance, Stable, or Dead if the group does not exist. `generation`
    is None if the home does not report it.
    """

    name: str
    state: str
    generation: int | None
    strategy: str
    members: tuple[MemberDescription, ...]


class TopicDescription(NamedTuple):
    """A topic as its home describes it."""

    name: str
    partitions: int
    config: Mapping[str, str]


class Delivery(NamedTuple):
    """The offset of a sent record or batch, or the error."""

    source: TopicPartition
    offset: int  # of the first record of the batch; -1 after an error
    count: int  # type: ignore[assignment]  # shadows tuple.count, which no caller uses
    error: LogError | None


PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
QUOTAS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
"""The quotas of a client id, by Kafka's names: bytes per second that its producers send, and its consumers read."""


class Throttling(NamedTuple):
    """The delays of one client, by the quota of its client id, since the client was created."""

    remaining_ms: int = 0
    """The time until the home takes or returns records again. It is 0 on Kafka, where brokers delay their responses."""
    responses: int = 0
    """The number of writes or polls that were followed by a delay."""
    total_ms: int = 0
    """The sum of the delays."""
    greatest_ms: int = 0
    """The longest delay."""


OnDelivery = Callable[[Delivery], None]
PartitionsListener = Callable[[list[TopicPartition]], None]
OnCommit = Callable[[Mapping[TopicPartition, OffsetAndMetadata], LogError | None], None]


class Span(NamedTuple):
    """Records of a partition that were written together, as `Consumer.skim` returns them."""

    start: int
    """An offset up to that of the first record."""
    end: int
    """The offset after the last record."""
    records: int
    """The number of records, at least 1."""
    latest_ms: int
    """The greatest timestamp."""


class Producer(Protocol):
    """A writer of records. It is not thread-safe, and is usable as a context manager."""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp: Time | None = None,
        headers: Headers = (),
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Buffer one record. Without `partition`, murmur2 of the key chooses it. Callbacks are called in send order.

        If the buffer is full, or the client id is over its quota, `send` blocks for up to `max.block.ms`, then raises
        BufferFullError.
        """
        ...

    def send_batch(self, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Buffer a batch for the partition that it names. Its offsets are ignored.

        If the topic refuses one of the rows, the whole batch fails: `flush` and the callback get the error.
        """
        ...

    def write_for(self, member: GroupMetadata) -> None:
        """Write the following records outside of transactions for a member of a group.

        If the member has left its group, a home with `Ability.FENCED_APPENDS` refuses the records with FencedError.
        Other homes accept them. Metadata without a member ends the check.
        """
        ...

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """Return the rows of a batch that its topic refuses, with the reason, such as their size."""
        ...

    def throttling(self) -> Throttling:
        """Return how the quota `producer_byte_rate` of the client id has delayed this producer."""
        ...

    def abandon(self) -> None:
        """Drop the buffered records that are not being written, because another process has taken over their task."""
        ...

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all sent records are written with the durability of the home. Raise the first error."""
        ...

    def begin_transaction(self) -> None:
        """Start a transaction, whose records stay hidden until the commit. Needs a `transactional.id`.

        If the client id is over its quota, a home may wait here, but not while the transaction is open.
        """
        ...

    def commit_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | GroupMetadata | None = None,
    ) -> None:
        """Flush, then commit the records and the offsets of a group atomically.

        With the metadata of a member as `group`, a commit of an older generation is refused.
        """
        ...

    def abort_transaction(self) -> None:
        """Abort the transaction: its records never become visible."""
        ...

    def prepare_transaction(self) -> str:
        """Flush, and leave the commit to the coordinator. Needs a `transaction.coordinator`.

        Returns the name with which the coordinator commits the transaction.
        """
        ...

    def close(self) -> None:
        """Flush and close. An open transaction that is not prepared is aborted."""
        ...

    def __enter__(self) -> Producer: ...
    def __exit__(self, *exc: object) -> None: ...


class TransactionCoordinator(Protocol):
    """A coordinator that commits transactions of several processes atomically. It is usable as a context manager.

    A newer coordinator with the same transactional id fences the older one and its producers.
    """

    @property
    def token(self) -> str:
        """The setting `transaction.coordinator` of producers for the next commit. Each commit changes it."""
        ...

    def commit(
        self,
        prepared: Collection[str],
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | None = None,
    ) -> None:
        """Commit prepared transactions and the offsets of a group atomically.

        All other transactions of its producers are aborted. If several producers have written the same records,
        `prepared` names only one of them.
        """
        ...

    def close(self) -> None:
        """Close. Transactions that are not committed are aborted."""
        ...

    def __enter__(self) -> TransactionCoordinator: ...
    def __exit__(self, *exc: object) -> None: ...


class Consumer(Protocol):
    """A reader of assigned partitions in offset order. It is not thread-safe, and is usable as a context manager."""

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions. Former ones keep their position, and new ones start at the beginning."""
        ...

    def assignment(self) -> frozenset[TopicPartition]: ...

    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None: ...
    def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None: ...
    def wakeup(self) -> None: ...
    def seek_to_time(self, partition: TopicPartition, time: Time) -> None:
        """Seek the first record whose timestamp is at or after `time` (an aware datetime, or milliseconds)."""
        ...

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record for `poll`. At an end, it is after hidden and aborted records."""
        ...

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets up to which this consumer could read now."""
        ...

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return True if the last poll has reached the end of the partition, and False while this is not known."""
        ...

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """Return at most `max_records` rows. Waits up to `timeout` seconds for the first, or for a `wakeup`.

        A partition may have more rows if few or none are returned, as while the client id is over its quota.
        `is_at_end` tells its end.
        """
        ...

    def throttling(self) -> Throttling:
        """Return how the quota `consumer_byte_rate` of the client id has delayed this consumer."""
        ...

    def skim(self, partition: TopicPartition, end: int) -> Span | None:
        """Count and skip the next records before offset `end` that were written together.

        As in `poll`, hidden and aborted records do not count, and the position moves after them. Returns None if there
        are no records before `end`. Only the header of a whole frame is read.
        """
        ...

    def pause(self, partitions: Collection[TopicPartition]) -> None: ...
    def resume(self, partitions: Collection[TopicPartition]) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Consumer: ...
    def __exit__(self, *exc: object) -> None: ...


class GroupConsumer(Consumer, Protocol):
    """A consumer with a `group.id`: it commits for its group and, if subscribed, shares partitions with other members.

    `poll` joins the group, takes part in rebalances and calls the listeners.
    """

    def subscribe(
        self,
        topics: Collection[str] | re.Pattern[str],
        *,
        on_assigned: PartitionsListener | None = None,
        on_revoked: PartitionsListener | None = None,
        on_lost: PartitionsListener | None = None,
    ) -> None:
        """Read the partitions of topics that the group assigns to this member.

        Parameters
        ----------
        topics : collection of str, or pattern
            The names of topics, or a pattern that their whole names match. Replaces an earlier subscription.
        on_assigned : callable or None
            Called with new partitions, which start at the committed offset, or by `auto.offset.reset`.
        on_revoked : callable or None
            Called with partitions before other members get them. Their positions can still be committed.
        on_lost : callable or None
            Called with partitions that other members may have already. Default: `on_revoked`.
        """
        ...

    def unsubscribe(self) -> None:
        """Leave the group. A static member stays in the group until its session ends."""
        ...

    def leave(self) -> None:
        """Leave the group immediately, also as a static member.

        Raises
        ------
        LogError
            If this is a static member and the home does not have `Ability.LEAVES_OF_STATIC_MEMBERS`.
        """
        ...

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commit these offsets, or the positions of all assigned partitions.

        Raises
        ------
        CommitFailedError, RebalanceInProgressError, FencedError
            If other members have the partitions or will get them. No offset was committed.
        """
        ...

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit. A later `poll` calls `on_commit` with the outcome. Commits keep their order."""
        ...

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the group. Partitions without an offset are missing."""
        ...

    def group_metadata(self) -> GroupMetadata:
        """Return the metadata with which `Producer.commit_transaction` commits for this member."""
        ...


class Admin(Protocol):
    """A client for topics, their offsets, and consumer groups. It is usable as a context manager."""

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic. Raises TopicExistsError, or ConfigError for an unknown or illegal topic setting."""
        ...

    def alter_topic(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change some settings of a topic. None restores a default."""
        ...

    def add_partitions(self, name: str, total: int) -> None:
        """Increase the number of partitions of a topic to `total`. Raises ConfigError unless it has fewer."""
        ...

    def delete_topic(self, name: str) -> None: ...
    def topics(self, awaited: Collection[str] = ()) -> dict[str, TopicDescription]:
        """Return all topics by name. A home in which new topics appear late waits for those in `awaited`."""
        ...

    def describe_topic(self, name: str) -> TopicDescription:
        """Return the description of a topic. UnknownTopicError names the nearest existing topic."""
        ...

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...
    def end_offsets(
        self, partitions: Collection[TopicPartition], *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record. With `committed_only`, the end for read_committed consumers."""
        ...

    def offsets_at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offset of the first record at or after a time (ms) in each partition.

        If there is none, the end for read_committed consumers. Kafka's `listOffsets` with `OffsetSpec.forTimestamp`.
        """
        ...

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets, for example processed records of repartition topics."""
        ...

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group. Partitions without an offset are missing."""
        ...

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets atomically. The metadata of each has at most 4,096 bytes."""
        ...

    def groups(self) -> list[str]: ...
    def describe_group(self, group: str) -> GroupDescription: ...
    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupDescription]:
        """Return the descriptions of several groups, with one request."""
        ...

    def delete_group(self, group: str) -> None:
        """Delete a group and its offsets. Raises LogError while it has members."""
        ...

    def remove_member(self, group: str, member: str) -> None:
        """Remove a member whose process has ended, so that its group does not wait for the end of its session.

        Nothing happens if the group has no such member. Kafka: `removeMembersFromConsumerGroup`.
        """
        ...

    def client_quotas(self) -> dict[str | None, dict[str, float]]:
        """Return the quotas by client id. None is the default of client ids without a quota of their own."""
        ...

    def alter_client_quotas(self, client_id: str | None, quotas: Mapping[str, float | None]) -> None:
        """Set quotas of a client id, by the names in `QUOTAS`. None removes one. Kafka: `alterClientQuotas`.

        Raises
        ------
        ConfigError
            If a name is unknown, or a rate is no whole number of bytes per second above 0.
        """
        ...

    def close(self) -> None: ...
    def __enter__(self) -> Admin: ...
    def __exit__(self, *exc: object) -> None: ...


class Log(Protocol):
    """An open home of topics."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """The features of this home that not every home has."""
        ...

    def producer(self, config: Mapping[str, Any] | None = None) -> Producer:
        """Return a new producer, with settings by Kafka's names.

        The settings are `transactional.id`, `transaction.timeout.ms`, `compression.type`, `linger.ms`, `batch.size`,
        `buffer.memory` and `max.block.ms`; `metadata.max.age.ms`, the time after which the number of partitions of a
        topic is read again; `transaction.coordinator`, the token of the coordinator that commits its transactions;
        `client.id`, the client that quotas count; `delivery.report.only.error`: callbacks are called for failures
        only, which costs less; and `quota.delays`: false if the caller itself waits for `throttling`.
        """
        ...

    def coordinator(self, transactional_id: str) -> TransactionCoordinator:
        """Return a coordinator that takes over a transactional id."""
        ...

    def consumer(self, config: Mapping[str, Any] | None = None) -> Consumer:
        """Return a new consumer, with settings by Kafka's names. `isolation.level` is `read_committed` by default.

        With `quota.delays` false, `poll` returns records though the client id is over its quota.
        """
        ...

    def admin(self) -> Admin: ...

    def close(self) -> None:
        """Close the home. Producers and consumers must be closed before."""
        ...

    def __enter__(self) -> Log: ...
    def __exit__(self, *exc: object) -> None: ...

    def do_housekeeping(self) -> bool:
        """Do a part of the housekeeping. Return False if nothing has to be done. Idle threads call this."""
        ...

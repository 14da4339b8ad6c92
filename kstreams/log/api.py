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
    """A group as its home knows it.

    `state` is Empty, PreparingRebalance, CompletingRebalance, Stable, or Dead if the group does not exist; `generation`
    is None if the home does not tell it.
    """

    name: str
    state: str
    generation: int | None
    strategy: str
    members: tuple[MemberDescription, ...]


class TopicDescription(NamedTuple):
    """A topic as its home knows it."""

    name: str
    partitions: int
    config: Mapping[str, str]


class Delivery(NamedTuple):
    """The offset of a sent record or batch, or the error."""

    source: TopicPartition
    offset: int  # of the first record of the batch; -1 after an error
    count: int  # type: ignore[assignment]  # shadows tuple.count, which no caller uses
    error: LogError | None


OnDelivery = Callable[[Delivery], None]
PartitionsListener = Callable[[list[TopicPartition]], None]
OnCommit = Callable[[Mapping[TopicPartition, OffsetAndMetadata], LogError | None], None]


class Span(NamedTuple):
    """Records of a partition that were written together, as `Consumer.skim` returns them."""

    start: int  # at most the offset of the first record
    end: int  # the offset after the last record
    records: int  # at least 1
    latest_ms: int  # greatest timestamp


class Producer(Protocol):
    """Appends records. Not shared between threads. Usable as a context manager."""

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
        """Buffer one record; without `partition`, murmur2 of the key chooses it. Callbacks come in send order.

        If the buffer is full, blocks for up to `max.block.ms`, then raises BufferFullError.
        """
        ...

    def send_batch(self, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Buffer a whole batch for the partition it names; its offsets are ignored.

        If the topic never takes one of the rows, the whole batch fails: `flush` and the callback get the error.
        """
        ...

    def write_for(self, member: GroupMetadata) -> None:
        """Write for a member of a group from now on, outside of transactions.

        A home with `Ability.FENCED_APPENDS` refuses the records with FencedError once the member has left its group;
        other homes take them. Metadata without a member removes the limit.
        """
        ...

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """Return the rows of a batch that its topic never takes, with the reason, such as their size."""
        ...

    def abandon(self) -> None:
        """Drop buffered records that are not yet being written: another process has taken over their task."""
        ...

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all sent records are written with the home's durability; raise the first error."""
        ...

    def begin_transaction(self) -> None:
        """Start a transaction (needs a `transactional.id`): its records stay hidden until the commit."""
        ...

    def commit_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | GroupMetadata | None = None,
    ) -> None:
        """Flush, then commit the records and the group's offsets as one.

        With the metadata of a member as `group`, a commit of an older generation is refused.
        """
        ...

    def abort_transaction(self) -> None:
        """Abort the transaction: its records never become visible."""
        ...

    def prepare_transaction(self) -> str:
        """Flush, and leave the commit to the coordinator (needs a `transaction.coordinator`).

        Returns the name by which the coordinator commits the transaction.
        """
        ...

    def close(self) -> None:
        """Flush and close; an open transaction that is not prepared is aborted."""
        ...

    def __enter__(self) -> Producer: ...
    def __exit__(self, *exc: object) -> None: ...


class TransactionCoordinator(Protocol):
    """Commits transactions of producers in several processes as one. Usable as a context manager.

    Of two coordinators with the same transactional id, the newer fences the older and its producers.
    """

    @property
    def token(self) -> str:
        """The `transaction.coordinator` setting of producers that write for the next commit; each commit changes it."""
        ...

    def commit(
        self,
        prepared: Collection[str],
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | None = None,
    ) -> None:
        """Commit prepared transactions and the group's offsets as one.

        All other transactions of its producers are aborted: of producers that wrote the same records, only one is
        named.
        """
        ...

    def close(self) -> None:
        """Close; transactions that are not committed are aborted."""
        ...

    def __enter__(self) -> TransactionCoordinator: ...
    def __exit__(self, *exc: object) -> None: ...


class Consumer(Protocol):
    """A reader of assigned partitions in offset order. It is not thread-safe, and is usable as a context manager."""

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions; those read before keep their position, new ones start at the beginning."""
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
        """Return the offset of the next record that `poll` would read; at an end, after hidden and aborted records."""
        ...

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets up to which this consumer could read now."""
        ...

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Return whether the last poll reached the end of the partition; False while this is not known."""
        ...

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """Return rows, at most `max_records` in all; waits up to `timeout` seconds for some, or for a `wakeup`.

        Few or no rows do not mean that the partition has no more: `is_at_end` does.
        """
        ...

    def skim(self, partition: TopicPartition, end: int) -> Span | None:
        """Count and skip the next records before offset `end`, as many as were written together.

        As with `poll`, hidden and aborted records do not count, and the position moves after them. Returns None if
        there are no records before `end`. Of a whole frame, only the header is read.
        """
        ...

    def pause(self, partitions: Collection[TopicPartition]) -> None: ...
    def resume(self, partitions: Collection[TopicPartition]) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Consumer: ...
    def __exit__(self, *exc: object) -> None: ...


class GroupConsumer(Consumer, Protocol):
    """A consumer with a `group.id`: it commits for its group and, if subscribed, shares partitions with other members.

    Joining the group, and assigning and revoking partitions, happen in `poll`, which also calls the listeners.
    """

    def subscribe(
        self,
        topics: Collection[str] | re.Pattern[str],
        *,
        on_assigned: PartitionsListener | None = None,
        on_revoked: PartitionsListener | None = None,
        on_lost: PartitionsListener | None = None,
    ) -> None:
        """Read the partitions that the group assigns of these topics, or of topics whose whole names match a pattern.

        Parameters
        ----------
        topics : collection of str, or pattern
            Replaces an earlier subscription.
        on_assigned : callable or None
            Called with new partitions, which start at the committed offset, or by `auto.offset.reset`.
        on_revoked : callable or None
            Called with partitions before other members get them: their positions can still be committed.
        on_lost : callable or None
            Called with partitions that other members may have already. Default: `on_revoked`.
        """
        ...

    def unsubscribe(self) -> None:
        """Leave the group; a static member stays in it until its session ends."""
        ...

    def leave(self) -> None:
        """Leave the group at once, a static member too.

        Raises
        ------
        LogError
            For a static member, if the home lacks `Ability.LEAVES_OF_STATIC_MEMBERS`.
        """
        ...

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commit these offsets, or the positions of all assigned partitions.

        Raises
        ------
        CommitFailedError, RebalanceInProgressError, FencedError
            Other members have the partitions, or are getting them. No offset was committed.
        """
        ...

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit; a later `poll` calls `on_commit` with the outcome. Commits keep their order."""
        ...

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without an offset are left out."""
        ...

    def group_metadata(self) -> GroupMetadata:
        """Return the metadata with which `Producer.commit_transaction` commits for this member."""
        ...


class Admin(Protocol):
    """Topics, their offsets, and the offsets that groups committed. Usable as a context manager."""

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic; raises TopicExistsError, or ConfigError for an unknown or illegal topic setting."""
        ...

    def alter_topic(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change some settings of a topic; None restores a default."""
        ...

    def add_partitions(self, name: str, total: int) -> None:
        """Give a topic `total` partitions; raises ConfigError unless it has fewer, as partitions cannot be removed."""
        ...

    def delete_topic(self, name: str) -> None: ...
    def topics(self, awaited: Collection[str] = ()) -> dict[str, TopicDescription]:
        """Return all topics by name. A home that learns late of new topics waits for those in `awaited`."""
        ...

    def describe_topic(self, name: str) -> TopicDescription:
        """Return the topic's description; UnknownTopicError names the nearest known topic."""
        ...

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...
    def end_offsets(
        self, partitions: Collection[TopicPartition], *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record; with `committed_only`, where a read_committed consumer stops."""
        ...

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets; repartition topics are purged this way."""
        ...

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without an offset are left out."""
        ...

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit all of these offsets as one; the metadata of each has at most 4,096 bytes."""
        ...

    def groups(self) -> list[str]: ...
    def describe_group(self, group: str) -> GroupDescription: ...
    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupDescription]:
        """Return the descriptions of several groups, with one request."""
        ...

    def delete_group(self, group: str) -> None:
        """Delete a group and its offsets; raises LogError while it has members."""
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

        These are `transactional.id`, `transaction.timeout.ms`, `compression.type`, `linger.ms`, `batch.size`,
        `buffer.memory`, `max.block.ms`; `metadata.max.age.ms`, the time after which it reads again whether a topic has
        more partitions; `transaction.coordinator`, the token of the coordinator that commits its transactions; and
        `delivery.report.only.error`: callbacks are called for failures only, which costs less.
        """
        ...

    def coordinator(self, transactional_id: str) -> TransactionCoordinator:
        """Take over a transactional id, and commit transactions of producers in other processes as one."""
        ...

    def consumer(self, config: Mapping[str, Any] | None = None) -> Consumer:
        """Return a new consumer, with settings by Kafka's names: `isolation.level` is `read_committed` by default."""
        ...

    def admin(self) -> Admin: ...

    def close(self) -> None:
        """Close the home; producers and consumers must be closed before."""
        ...

    def __enter__(self) -> Log: ...
    def __exit__(self, *exc: object) -> None: ...

    def do_housekeeping(self) -> bool:
        """Do a part of the housekeeping that is due; return False if none is due. Called by threads that are idle."""
        ...

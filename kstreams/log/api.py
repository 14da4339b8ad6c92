"""What any home of topics offers: `Producer`, `Consumer`, `Admin`, `TransactionCoordinator`, and `Log` that makes them.

Invariants: `tests/log/contract` states them and every home must pass it. Nothing here knows which home it is; what only
some homes do is an `Ability`.
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
    """What not every home does."""

    COMMITS_AT_ONCE = "what a transaction has written is visible when its commit returns, not a moment later"
    COORDINATOR = "several producers' transactions are committed as one"
    FENCED_APPENDS = "what a producer writes for a member of a group lands only while the member is in its group"
    FAIR_POLLS = "each poll begins with another partition"
    FRAMES = "writing decides what lies together, and offsets count records alone, not ends of transactions"
    GROUPS = "consumers with a `group.id` share partitions: a `GroupConsumer`"
    LEAVES_OF_STATIC_MEMBERS = "a static member can leave its group before its session ends"
    NEW_TOPICS_DIFFER = "a topic that was deleted and made anew is told from the old one"
    REFUSED_TRANSACTIONS_STAY_OPEN = "a transaction that the group refused can be committed by its next metadata"
    TIME_ZERO = "records of the first millisecond of 1970 and times before it are kept"
    TOPIC_TYPES = "the settings of a topic say what its records are"
    ZERO_IN_HEADERS = "the name of a header may hold the character 0"


class OffsetAndMetadata(NamedTuple):
    """A committed position: the next offset to read, and a short text kept with it."""

    offset: int
    metadata: str = ""


class GroupMetadata(NamedTuple):
    """Who commits for a group: a member in a generation; without a member, somebody outside the group."""

    group: str
    member: str = ""
    generation: int = -1
    instance: str | None = None


class MemberDescription(NamedTuple):
    """A member of a group; `instance` is the lasting name of a static one."""

    id: str
    instance: str | None
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A group as its home knows it.

    `state` is Empty, PreparingRebalance, CompletingRebalance, Stable, or Dead of one that is not there; `generation` is
    None where the home does not tell it.
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
    """Where a sent record or batch ended up, or why it did not."""

    source: TopicPartition
    offset: int  # of the first record of the batch; -1 when it failed
    count: int  # type: ignore[assignment]  # shadows tuple.count, which nobody asks a Delivery for
    error: LogError | None


OnDelivery = Callable[[Delivery], None]
PartitionsListener = Callable[[list[TopicPartition]], None]
OnCommit = Callable[[Mapping[TopicPartition, OffsetAndMetadata], LogError | None], None]


class Span(NamedTuple):
    """Records of a partition that lie together, as `Consumer.skim` tells of them."""

    start: int  # none of them has a smaller offset
    end: int  # offset of what follows
    records: int  # at least 1
    latest_ms: int  # the greatest of their timestamps


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
        """Buffer one record; its partition is murmur2 of the key unless given. Callbacks come in send order.

        Blocks up to `max.block.ms` when the buffer is full, then raises BufferFullError.
        """
        ...

    def send_batch(self, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Buffer a whole batch for the partition it names; its offsets are ignored."""
        ...

    def write_for(self, member: GroupMetadata) -> None:
        """Write for a member of a group from now on: without a transaction, its records land while it is a member.

        A home with `Ability.FENCED_APPENDS` refuses with FencedError what a former member writes; others take it.
        Metadata without a member takes the limit away.
        """
        ...

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """The rows of a batch that its topic would never take, and why: too large, or without a key it asks for."""
        ...

    def abandon(self) -> None:
        """Drop what was sent and is not on its way yet: others have the place of who sent it."""
        ...

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything sent is written to the level of durability asked for; raise what failed."""
        ...

    def begin_transaction(self) -> None:
        """Start a transaction (needs a `transactional.id`): what is sent stays hidden until its commit."""
        ...

    def commit_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | GroupMetadata | None = None,
    ) -> None:
        """Flush, then make the records and the group's offsets visible as one.

        With the metadata of a member in place of the group's name, a member of an older generation is refused.
        """
        ...

    def abort_transaction(self) -> None:
        """Drop what was sent since `begin_transaction`."""
        ...

    def prepare_transaction(self) -> str:
        """Flush, and leave the commit to the coordinator (needs a `transaction.coordinator`); its name for it."""
        ...

    def close(self) -> None:
        """Flush and release; an open transaction that is not prepared is aborted."""
        ...

    def __enter__(self) -> Producer: ...
    def __exit__(self, *exc: object) -> None: ...


class TransactionCoordinator(Protocol):
    """Commits as one what producers in several processes have written. Usable as a context manager.

    It has a transactional id: of two coordinators with the same one, the newer fences the older and its producers.
    """

    @property
    def token(self) -> str:
        """The `transaction.coordinator` of producers that write for the next commit; each commit makes another."""
        ...

    def commit(
        self,
        prepared: Collection[str],
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | None = None,
    ) -> None:
        """Make the records of prepared transactions and the group's offsets visible as one.

        All other transactions of its producers are aborted: of those that write something twice, one is named.
        """
        ...

    def close(self) -> None:
        """Release; what is not committed is aborted."""
        ...

    def __enter__(self) -> TransactionCoordinator: ...
    def __exit__(self, *exc: object) -> None: ...


class Consumer(Protocol):
    """Reads assigned partitions in offset order. Not shared between threads. Usable as a context manager."""

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these; partitions kept from before keep their position, new ones start at the beginning."""
        ...

    def assignment(self) -> frozenset[TopicPartition]: ...

    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None: ...
    def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None: ...
    def wakeup(self) -> None: ...
    def seek_to_time(self, partition: TopicPartition, time: Time) -> None:
        """Go to the first record whose timestamp is at or after `time` (an aware datetime, or ms)."""
        ...

    def position(self, partition: TopicPartition) -> int:
        """Offset of the next record that `poll` would return. At an end it lies behind what is not handed out."""
        ...

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Up to where this consumer could read now, asked at the home."""
        ...

    def is_at_end(self, partition: TopicPartition) -> bool:
        """Whether the last poll came to where the partition ended then; false while that is not known."""
        ...

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """What is here, at most `max_records` rows together; waits up to `timeout` seconds, or for a `wakeup`.

        No rows do not mean that there are none, nor few that there are no more: `is_at_end` does.
        """
        ...

    def skim(self, partition: TopicPartition, end: int) -> Span | None:
        """The next records before offset `end`, as many as lie together: counted and timed, and passed over.

        As with `poll`, what is hidden or aborted does not count, and the position moves behind it. None when there is
        nothing before `end`. Whole frames are not read: their headers say it all.
        """
        ...

    def pause(self, partitions: Collection[TopicPartition]) -> None: ...
    def resume(self, partitions: Collection[TopicPartition]) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Consumer: ...
    def __exit__(self, *exc: object) -> None: ...


class GroupConsumer(Consumer, Protocol):
    """A consumer with a `group.id`: it commits for its group and, when it subscribes, shares partitions with others.

    Joining, losing and getting partitions happen in `poll`, and so do the calls of listeners.
    """

    def subscribe(
        self,
        topics: Collection[str] | re.Pattern[str],
        *,
        on_assigned: PartitionsListener | None = None,
        on_revoked: PartitionsListener | None = None,
        on_lost: PartitionsListener | None = None,
    ) -> None:
        """Read what the group gives this member of these topics, or of all whose whole names match the pattern.

        Parameters
        ----------
        topics : collection of str, or pattern
            In the place of an earlier subscription.
        on_assigned : callable or None
            Called with new partitions, which stand at the committed offset or where `auto.offset.reset` says.
        on_revoked : callable or None
            Called with partitions before others get them: what was read of them can still be committed.
        on_lost : callable or None
            Called with partitions that others may have already; `on_revoked` unless given.
        """
        ...

    def unsubscribe(self) -> None:
        """Leave the group; the place of a static member stays until its session ends."""
        ...

    def leave(self) -> None:
        """Leave the group at once, a static member too.

        Raises
        ------
        LogError
            For a static member, where the home lacks `Ability.LEAVES_OF_STATIC_MEMBERS`.
        """
        ...

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commit these offsets, or the positions of all assigned partitions.

        Raises
        ------
        CommitFailedError, RebalanceInProgressError, FencedError
            Others may have the partitions by now, or get them now. Nothing was committed.
        """
        ...

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit without an error here: `on_commit` gets it at a later `poll`. No later commit is overwritten."""
        ...

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without one are left out."""
        ...

    def group_metadata(self) -> GroupMetadata:
        """What `Producer.commit_transaction` takes, so that the commit of a member that is out is refused."""
        ...


class Admin(Protocol):
    """Topics, their offsets, and the offsets that groups committed. Usable as a context manager."""

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic; raises TopicExistsError, or ConfigError for an unknown or bad topic setting."""
        ...

    def alter_topic(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change some settings of a topic; None takes one back to its default."""
        ...

    def add_partitions(self, name: str, total: int) -> None:
        """Let a topic have so many partitions; raises ConfigError when it has as many: none is ever taken away."""
        ...

    def delete_topic(self, name: str) -> None: ...
    def topics(self, awaited: Collection[str] = ()) -> dict[str, TopicDescription]:
        """All topics by name. Those `awaited` may have been made a moment ago: a home that is told late waits."""
        ...

    def describe_topic(self, name: str) -> TopicDescription:
        """The topic's description; raises UnknownTopicError, which names the nearest known topic."""
        ...

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...
    def end_offsets(
        self, partitions: Collection[TopicPartition], *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Offset after the last record; with `committed_only`, where a read_committed reader stops."""
        ...

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Let everything before these offsets go (repartition topics are purged with it)."""
        ...

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without one are left out."""
        ...

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit all of these offsets as one; metadata has 4,096 bytes at most."""
        ...

    def groups(self) -> list[str]: ...
    def describe_group(self, group: str) -> GroupDescription: ...
    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupDescription]:
        """The descriptions of several groups, which are asked for together."""
        ...

    def delete_group(self, group: str) -> None:
        """Forget a group and its offsets; raises LogError while it has members."""
        ...

    def close(self) -> None: ...
    def __enter__(self) -> Admin: ...
    def __exit__(self, *exc: object) -> None: ...


class Log(Protocol):
    """A home of topics."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it does that not every home does."""
        ...

    def producer(self, config: Mapping[str, Any] | None = None) -> Producer:
        """Settings by Kafka's names.

        `transactional.id`, `transaction.timeout.ms`, `compression.type`, `linger.ms`, `batch.size`, `buffer.memory`,
        `max.block.ms`; `metadata.max.age.ms`, after how long it looks whether a topic has got more partitions;
        `transaction.coordinator`, the token of the coordinator that commits its transactions; and
        `delivery.report.only.error`: callbacks tell of failures alone, which costs less.
        """
        ...

    def coordinator(self, transactional_id: str) -> TransactionCoordinator:
        """Take over a transactional id whose transactions are written by producers elsewhere and committed together."""
        ...

    def consumer(self, config: Mapping[str, Any] | None = None) -> Consumer:
        """Settings by Kafka's names: `isolation.level` (`read_committed` by default)."""
        ...

    def admin(self) -> Admin: ...

    def close(self) -> None:
        """Release what it holds; producers and consumers are closed before."""
        ...

    def __enter__(self) -> Log: ...
    def __exit__(self, *exc: object) -> None: ...

    def tend(self) -> bool:
        """Do a piece of the housekeeping that is due, for who has nothing else to do; False when there is none."""
        ...

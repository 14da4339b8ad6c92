"""`Group`: a consumer group at one moment, with its members; it can be written as a text and read again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

import msgspec

from kstreams.errors import CommitFailedError, FencedError, RebalanceInProgressError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.groups.subscription import MemberSubscription


def for_members_alone(group: str) -> CommitFailedError:
    """The error for who commits from outside."""
    return CommitFailedError(
        f"Offsets of the group {group!r} are committed by its members as long as it has some: stop them first."
    )


def no_member(group: str, member: str) -> CommitFailedError:
    """The error for a member that is out."""
    return CommitFailedError(
        f"{member} is no member of the group {group!r} any more, and its partitions may belong to others by now: "
        "poll to join again, and read on from what is committed."
    )


def former_member(group: str, member: str) -> FencedError:
    """The error for records of a member that is out."""
    return FencedError(
        f"{member} is no member of the group {group!r} any more: what it had not written yet is not written, since "
        "others may have its partitions. Join again, and read on from what is committed."
    )


def of_another_generation(group: str, generation: int) -> CommitFailedError:
    """The error for a member that has missed a generation, or tells an older one."""
    return CommitFailedError(
        f"The group {group!r} has gone on, and the commit is of generation {generation}: its partitions may belong to "
        "others by now. Poll to join again, and read on from what is committed."
    )


def replaced(group: str, instance: str | None) -> FencedError:
    """The error for a static member that was started a second time."""
    return FencedError(
        f"Another consumer has taken the `group.instance.id` {instance!r} of the group {group!r}: close this one."
    )


def dividing(group: str) -> RebalanceInProgressError:
    """The error for a commit between two generations."""
    return RebalanceInProgressError(
        f"The group {group!r} is dividing its partitions: poll, then commit again what is still assigned."
    )


class GroupState(Enum):
    """State of a group, in Kafka's words."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Member(msgspec.Struct, frozen=True):
    """A member of a group.

    Parameters
    ----------
    id : str
        New for every start of a member.
    strategies : tuple of str
        The assignors it can take part in, the best first.
    subscription : MemberSubscription
        What it wants to read, and what it has.
    session_ms : int
        After how long without a sign of life it counts as dead.
    rebalance_ms : int
        How long others wait until it has joined a new generation.
    joined : bool
        Whether it takes part in the generation that is formed, or was.
    assignment : tuple of TopicPartition
        What it may read; nothing before its generation is stable.
    """

    id: str
    strategies: tuple[str, ...]
    subscription: MemberSubscription
    session_ms: int
    rebalance_ms: int
    joined: bool = False
    assignment: tuple[TopicPartition, ...] = ()

    @property
    def instance(self) -> str | None:
        """The lasting name of a static member."""
        return self.subscription.instance


class Group(msgspec.Struct, frozen=True):
    """A group at one moment; transitions make another (`kstreams.log.groups.transitions`).

    Parameters
    ----------
    name : str
    state : GroupState
    generation : int
        Grows by one when a set of members is complete.
    strategy : str
        The assignor that all members know.
    leader : str
        The member that assigns.
    members : dict of str to Member
        By id.
    deadline_ms : int
        When those are given up that a rebalance waits for, by the uptime of the machine.
    """

    name: str
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    strategy: str = ""
    leader: str = ""
    members: dict[str, Member] = {}
    deadline_ms: int = 0

    def encode(self) -> str:
        """The group as a text.

        Examples
        --------
        >>> Group.decode(Group("readers", generation=3).encode()).generation
        3
        """
        return msgspec.json.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> Group:
        """The inverse of `encode`."""
        return decode_json(text, cls)

    def of_instance(self, instance: str | None) -> Member | None:
        """The static member with a lasting name."""
        found = (member for member in self.members.values() if instance is not None and member.instance == instance)
        return next(found, None)

    def with_members(self, members: Iterable[Member]) -> Group:
        """The group with these members in the place of those it has."""
        return msgspec.structs.replace(self, members={member.id: member for member in members})


def check_member(group: Group, member: str, instance: str | None) -> None:
    """Refuse who is no member, or was replaced by another start of the same static member.

    Raises
    ------
    FencedError, CommitFailedError
    """
    if member in group.members:
        return
    if group.of_instance(instance) is not None:
        raise replaced(group.name, instance)
    raise no_member(group.name, member) if member else for_members_alone(group.name)


def check_commit(
    group: Group, member: str, instance: str | None, generation: int, partitions: Collection[TopicPartition] = ()
) -> None:
    """Refuse a commit of partitions that may belong to another member.

    A member of the present generation may commit. So may one that has joined it and not yet taken what it gives, as
    long as it is for what it had when it joined: nobody else gets that before it is given back.

    Raises
    ------
    CommitFailedError
        The partitions may belong to others by now.
    RebalanceInProgressError
        The partitions of this generation are still being divided: try again after the next poll.
    FencedError
        Another consumer has the member's `group.instance.id`.
    """
    if not group.members and not member:
        return
    check_member(group, member, instance)
    claim = group.members[member].subscription
    if partitions and generation == claim.generation and set(partitions) <= set(claim.owned):
        return
    if generation != group.generation:
        raise of_another_generation(group.name, generation)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise dividing(group.name)

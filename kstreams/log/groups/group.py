"""`Group`: a consumer group with its members at one moment, encoded as JSON; and the errors of refused commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

import msgspec

from kstreams.errors import CommitFailedError, FencedError, RebalanceInProgressError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.groups.subscription import MemberSubscription


def for_members_alone(group: str) -> CommitFailedError:
    """Return the error for a commit from outside of a group that has members."""
    return CommitFailedError(
        f"Offsets of the group {group!r} are committed by its members as long as it has some: stop them first."
    )


def no_member(group: str, member: str) -> CommitFailedError:
    """Return the error for a commit of a former member."""
    return CommitFailedError(
        f"{member} is no member of the group {group!r} any more, and its partitions may belong to others by now: "
        "poll to join again, and read on from what is committed."
    )


def former_member(group: str, member: str) -> FencedError:
    """Return the error for records of a former member."""
    return FencedError(
        f"{member} is no member of the group {group!r} any more: what it had not written yet is not written, since "
        "others may have its partitions. Join again, and read on from what is committed."
    )


def of_another_generation(group: str, generation: int) -> CommitFailedError:
    """Return the error for a commit of an older generation."""
    return CommitFailedError(
        f"The group {group!r} has gone on, and the commit is of generation {generation}: its partitions may belong to "
        "others by now. Poll to join again, and read on from what is committed."
    )


def replaced(group: str, instance: str | None) -> FencedError:
    """Return the error for a static member that was started a second time."""
    return FencedError(
        f"Another consumer has taken the `group.instance.id` {instance!r} of the group {group!r}: close this one."
    )


def dividing(group: str) -> RebalanceInProgressError:
    """Return the error for a commit during a rebalance."""
    return RebalanceInProgressError(
        f"The group {group!r} is dividing its partitions: poll, then commit again what is still assigned."
    )


class GroupState(Enum):
    """The state of a group, by Kafka's names."""

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
        New each time a member starts.
    strategies : tuple of str
        The assignors that it supports, by preference.
    subscription : MemberSubscription
        Its topics, and the partitions that it has.
    session_ms : int
        Time without a heartbeat after which it counts as dead.
    rebalance_ms : int
        Time in which it must join a new generation.
    joined : bool
        Whether it has joined the generation that is being formed, or was formed last.
    assignment : tuple of TopicPartition
        The partitions that it reads; none before its generation is stable.
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
        """The `group.instance.id` of a static member."""
        return self.subscription.instance


class Group(msgspec.Struct, frozen=True):
    """A group at one moment; `kstreams.log.groups.transitions` returns the group after an event.

    Parameters
    ----------
    name : str
    state : GroupState
    generation : int
        Increases by one each time all members have joined.
    strategy : str
        The assignor of the generation, which all members support.
    leader : str
        The member that assigns the partitions.
    members : dict of str to Member
        By id.
    deadline_ms : int
        Uptime of the machine after which members that delay a rebalance are removed.
    """

    name: str
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    strategy: str = ""
    leader: str = ""
    members: dict[str, Member] = {}
    deadline_ms: int = 0

    def encode(self) -> str:
        """Encode the group as JSON.

        Examples
        --------
        >>> Group.decode(Group("readers", generation=3).encode()).generation
        3
        """
        return msgspec.json.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> Group:
        """Decode a group from JSON."""
        return decode_json(text, cls)

    def of_instance(self, instance: str | None) -> Member | None:
        """Return the static member with a `group.instance.id`, if there is one."""
        members = (member for member in self.members.values() if instance is not None and member.instance == instance)
        return next(members, None)

    def with_members(self, members: Iterable[Member]) -> Group:
        """Return the group with other members."""
        return msgspec.structs.replace(self, members={member.id: member for member in members})


def check_member(group: Group, member: str, instance: str | None) -> None:
    """Raise for an id that is no member, or whose static member was started again.

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
    """Raise for a commit of partitions that may belong to another member.

    A member of the present generation may commit. So may a member that has joined it and does not yet read its new
    assignment, for partitions that it had when it joined: no other member gets these before they are revoked.

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

"""`Group`: the state of a consumer group with its members, and the errors of refused commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

import msgspec

from kstreams.errors import CommitFailedError, FencedError, RebalanceInProgressError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.groups.subscription import MemberSubscription


def group_has_members(group: str) -> CommitFailedError:
    """Return the error for a commit by a client that is not a member of a group with members."""
    return CommitFailedError(
        f"Only members of the group {group!r} can commit its offsets as long as it has some: stop them first."
    )


def not_a_member(group: str, member: str) -> CommitFailedError:
    """Return the error for a commit of a former member."""
    return CommitFailedError(
        f"{member} is no member of the group {group!r} any more, and its partitions may belong to others by now: "
        "poll to join again, and continue at the committed offsets."
    )


def former_member(group: str, member: str) -> FencedError:
    """Return the error for records of a former member."""
    return FencedError(
        f"{member} is no member of the group {group!r} any more: its remaining records are not written, because others "
        "may have its partitions. Join again, and continue at the committed offsets."
    )


def old_generation(group: str, generation: int) -> CommitFailedError:
    """Return the error for a commit of an older generation."""
    return CommitFailedError(
        f"The group {group!r} has a newer generation, and the commit is of generation {generation}: its partitions may "
        "belong to others by now. Poll to join again, and continue at the committed offsets."
    )


def instance_replaced(group: str, instance: str | None) -> FencedError:
    """Return the error for a static member that was started a second time."""
    return FencedError(
        f"Another consumer has taken the `group.instance.id` {instance!r} of the group {group!r}: close this one."
    )


def rebalance_in_progress(group: str) -> RebalanceInProgressError:
    """Return the error for a commit during a rebalance."""
    return RebalanceInProgressError(
        f"The group {group!r} is rebalancing: poll, then commit again the partitions that are still assigned."
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
        The member id, new for each start of a member.
    strategies : tuple of str
        The assignors that it supports, by preference.
    subscription : MemberSubscription
        The topics and the partitions of the member.
    session_ms : int
        The time without a heartbeat after which the member counts as dead.
    rebalance_ms : int
        The time in which the member has to join a new generation.
    joined : bool
        True if the member has joined the next generation during a rebalance, or else the present generation.
    assignment : tuple of TopicPartition
        The partitions that the member reads. Empty before its generation is stable.
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
    """The state of a group. `kstreams.log.groups.transitions` returns the state after an event.

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
        The members by id.
    deadline_ms : int
        The uptime of the machine at which members that delay a rebalance are removed.
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
        """Return the static member with a `group.instance.id`, or None."""
        members = (member for member in self.members.values() if instance is not None and member.instance == instance)
        return next(members, None)

    def with_members(self, members: Iterable[Member]) -> Group:
        """Return the group with other members."""
        return msgspec.structs.replace(self, members={member.id: member for member in members})


def check_member(group: Group, member: str, instance: str | None) -> None:
    """Check that an id is a member of the group.

    Raises
    ------
    FencedError
        If the static member was started again with another id.
    CommitFailedError
        If the id is no member.
    """
    if member in group.members:
        return
    if group.of_instance(instance) is not None:
        raise instance_replaced(group.name, instance)
    raise not_a_member(group.name, member) if member else group_has_members(group.name)


def check_commit(
    group: Group, member: str, instance: str | None, generation: int, partitions: Collection[TopicPartition] = ()
) -> None:
    """Check that the partitions of a commit cannot belong to another member.

    A member of the present generation may commit. A member that has joined it and does not yet read its new assignment
    may commit the partitions that it had when it joined, because no other member gets them before they are revoked.

    Raises
    ------
    CommitFailedError
        If the partitions may belong to others by now.
    RebalanceInProgressError
        If the partitions of this generation are not assigned yet. A commit after the next poll may succeed.
    FencedError
        If another consumer has the member's `group.instance.id`.
    """
    if not group.members and not member:
        return
    check_member(group, member, instance)
    claim = group.members[member].subscription
    if partitions and generation == claim.generation and set(partitions) <= set(claim.owned):
        return
    if generation != group.generation:
        raise old_generation(group.name, generation)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise rebalance_in_progress(group.name)

"""`next_step`: the transition of a group by an event to the new group, with a list of actions. Pure.

Members join or join again. When all members have joined, a generation is complete, and its leader assigns the
partitions. Members that have not joined by the deadline are removed. Static members are removed only after their
session timeout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from kstreams.errors import LogError, RebalanceInProgressError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.groups.group import Group, GroupState, Member, check_member


class Join(NamedTuple):
    """A member joins the next generation."""

    member: Member


class Sync(NamedTuple):
    """The leader assigns partitions to each member."""

    member: str
    generation: int
    assignments: Mapping[str, Sequence[TopicPartition]]


class Leave(NamedTuple):
    """A member leaves or is dead."""

    member: str
    reason: str


class DeadlineCheck(NamedTuple):
    """An observer requests the removal of members that have missed the deadline."""


Event: TypeAlias = Join | Sync | Leave | DeadlineCheck


class ActionKind(Enum):
    """The kind of an action in a group."""

    REMOVED = "removed"
    REPLACED = "replaced"  # the static member was started again
    REBALANCE = "rebalance"
    GENERATION = "generation"
    ASSIGNED = "assigned generation"


class Action(NamedTuple):
    """A change of a group, for logs: a removed member or a new state, and the reason."""

    kind: ActionKind
    subject: str
    reason: str = ""


class GroupStep(NamedTuple):
    """The group after an event, and the actions."""

    group: Group
    actions: tuple[Action, ...] = ()

    def followed_by(self, transition: Callable[..., GroupStep], *arguments: Any) -> GroupStep:
        """Apply another transition to the group."""
        next_step = transition(self.group, *arguments)
        return GroupStep(next_step.group, self.actions + next_step.actions)


def next_step(group: Group, event: Event, now_ms: int) -> GroupStep:
    """Return the group after an event, and the actions.

    Raises
    ------
    LogError
        If a member that joins has no assignor in common with the others, or a member that is not the leader assigns.
    FencedError, CommitFailedError, RebalanceInProgressError
        If the member that assigns is of an earlier generation, or is no member.

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> one = Member("one", ("range",), MemberSubscription(("words",)), 45_000, 300_000)
    >>> step = next_step(Group("readers"), Join(one), 0)
    >>> step.group.state.value, step.group.generation, step.group.leader
    ('CompletingRebalance', 1, 'one')
    >>> step = next_step(step.group, Sync("one", 1, {"one": [TopicPartition("words", 0)]}), 0)
    >>> step.group.state.value, str(*step.group.members["one"].assignment)
    ('Stable', 'words-0')
    """
    return _HANDLERS[type(event)](group, event, now_ms)


def _join(group: Group, event: Join, now_ms: int) -> GroupStep:
    newcomer = replace(event.member, joined=True, assignment=())
    _check_strategies(group, newcomer)
    existing = group.members.get(newcomer.id)
    former = group.of_instance(newcomer.instance)
    if existing is None and former is not None:
        return _replace_static_member(group, former, newcomer, now_ms)
    if existing is not None and existing.joined and _is_unchanged(existing, newcomer) and _may_stay(group, existing):
        return GroupStep(group)
    reason = f"{newcomer.id} joins" + (" again" if existing is not None else "")
    step = GroupStep(_with_member(group, newcomer)).followed_by(_prepare_rebalance, newcomer.id, reason, now_ms)
    return step.followed_by(_complete_if_joined, now_ms)


def _replace_static_member(group: Group, former: Member, newcomer: Member, now_ms: int) -> GroupStep:
    """Replace a static member that was started again. In a stable group, it gets its partitions without a rebalance."""
    other_members = [member for member in group.members.values() if member.id != former.id]
    leader = newcomer.id if group.leader == former.id else group.leader
    action = Action(ActionKind.REPLACED, former.id, f"{newcomer.instance} was started again")
    if group.state is GroupState.STABLE and _has_same_topics(former, newcomer):
        replacement = replace(newcomer, assignment=former.assignment)
        return GroupStep(replace(group.with_members([*other_members, replacement]), leader=leader), (action,))
    changed_group = replace(group.with_members([*other_members, newcomer]), leader=leader)
    step = GroupStep(changed_group, (action,))
    step = step.followed_by(_prepare_rebalance, newcomer.id, f"{newcomer.id} joins", now_ms)
    return step.followed_by(_complete_if_joined, now_ms)


def _sync(group: Group, event: Sync, now_ms: int) -> GroupStep:
    check_member(group, event.member, None)
    if event.generation != group.generation or group.state is not GroupState.COMPLETING_REBALANCE:
        raise RebalanceInProgressError(
            f"The group {group.name!r} does not expect assignments of generation {event.generation}: join again."
        )
    if event.member != group.leader:
        raise LogError(f"{event.member} does not lead the group {group.name!r}: {group.leader} assigns.")
    members = [
        replace(member, assignment=tuple(event.assignments.get(member.id, ()))) for member in group.members.values()
    ]
    stable = replace(group.with_members(members), state=GroupState.STABLE)
    return GroupStep(stable, (Action(ActionKind.ASSIGNED, str(group.generation)),))


def _leave(group: Group, event: Leave, now_ms: int) -> GroupStep:
    if event.member not in group.members:
        return GroupStep(group)
    remaining = group.with_members(member for member in group.members.values() if member.id != event.member)
    step = GroupStep(remaining, (Action(ActionKind.REMOVED, event.member, event.reason),))
    step = step.followed_by(_prepare_rebalance, "", f"{event.member} is gone", now_ms)
    return step.followed_by(_complete_if_joined, now_ms)


def _check_deadline(group: Group, event: DeadlineCheck, now_ms: int) -> GroupStep:
    """After the deadline, remove the members that have not joined, or a leader that has not assigned."""
    if now_ms < group.deadline_ms:
        return GroupStep(group)
    if group.state is GroupState.COMPLETING_REBALANCE:
        return _leave(group, Leave(group.leader, "it led and did not assign within max.poll.interval.ms"), now_ms)
    if group.state is not GroupState.PREPARING_REBALANCE:
        return GroupStep(group)
    late_members = {id_ for id_, member in group.members.items() if not member.joined and member.instance is None}
    reason = "it did not join again within max.poll.interval.ms"
    removals = tuple(Action(ActionKind.REMOVED, id_, reason) for id_ in late_members)
    remaining = group.with_members(member for member in group.members.values() if member.id not in late_members)
    if remaining.members and not any(member.joined for member in remaining.members.values()):
        # Only static members remain, which may still join within their session timeout.
        return GroupStep(replace(remaining, deadline_ms=now_ms + _rebalance_timeout_ms(remaining)), removals)
    return GroupStep(remaining, removals).followed_by(_form_generation, now_ms)


_HANDLERS: dict[type, Callable[[Group, Any, int], GroupStep]] = {
    Join: _join,
    Sync: _sync,
    Leave: _leave,
    DeadlineCheck: _check_deadline,
}


def _prepare_rebalance(group: Group, joining: str, reason: str, now_ms: int) -> GroupStep:
    """Start a rebalance. All members have to join again, except the one that is joining."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return GroupStep(group)
    members = group.with_members(replace(member, joined=member.id == joining) for member in group.members.values())
    deadline_ms = now_ms + _rebalance_timeout_ms(group)
    preparing = replace(members, state=GroupState.PREPARING_REBALANCE, deadline_ms=deadline_ms)
    return GroupStep(preparing, (Action(ActionKind.REBALANCE, f"after generation {group.generation}", reason),))


def _complete_if_joined(group: Group, now_ms: int) -> GroupStep:
    """Form the next generation if all members have joined."""
    if all(member.joined for member in group.members.values()):
        return _form_generation(group, now_ms)
    return GroupStep(group)


def _form_generation(group: Group, now_ms: int) -> GroupStep:
    """Form the next generation from the members of the group."""
    number = group.generation + 1
    action = Action(ActionKind.GENERATION, str(number), f"{len(group.members)} members")
    if not group.members:
        return GroupStep(replace(group, state=GroupState.EMPTY, generation=number, strategy="", leader=""), (action,))
    joined = sorted(member.id for member in group.members.values() if member.joined)
    next_generation = replace(
        group.with_members(replace(member, assignment=()) for member in group.members.values()),
        state=GroupState.COMPLETING_REBALANCE,
        generation=number,
        strategy=_chosen_assignor(group),
        leader=group.leader if group.leader in joined else joined[0],
        deadline_ms=now_ms + _rebalance_timeout_ms(group),
    )
    return GroupStep(next_generation, (action,))


def _chosen_assignor(group: Group) -> str:
    """Return the assignor that most members prefer, among those that all members support."""
    common = _common_assignors(group)
    votes = Counter(next(name for name in member.strategies if name in common) for member in group.members.values())
    return min(votes, key=lambda name: (-votes[name], name))


def _common_assignors(group: Group) -> set[str]:
    return reduce(set.__and__, (set(member.strategies) for member in group.members.values()))


def _check_strategies(group: Group, newcomer: Member) -> None:
    other_members = {id_: member for id_, member in group.members.items() if id_ != newcomer.id}
    if not other_members:
        return
    common = _common_assignors(replace(group, members=other_members))
    if not common & set(newcomer.strategies):
        raise LogError(
            f"{newcomer.id} cannot join the group {group.name!r}: its `partition.assignment.strategy` "
            f"({', '.join(newcomer.strategies)}) has no assignor that all members have ({', '.join(sorted(common))})."
        )


def _may_stay(group: Group, member: Member) -> bool:
    """Return True if a member that joins unchanged needs no new generation. The leader requests one by joining."""
    return group.state is not GroupState.STABLE or member.id != group.leader


def _is_unchanged(before: Member, now: Member) -> bool:
    return (before.strategies, before.subscription) == (now.strategies, now.subscription)


def _has_same_topics(before: Member, now: Member) -> bool:
    topics_before = before.subscription.topics
    return (before.strategies, topics_before) == (now.strategies, now.subscription.topics)


def _rebalance_timeout_ms(group: Group) -> int:
    return max((member.rebalance_ms for member in group.members.values()), default=0)


def _with_member(group: Group, member: Member) -> Group:
    return replace(group, members={**group.members, member.id: member})

"""How a group changes: an event comes in, the group after it and what happened in it come out. Pure.

A member joins, or joins again; when all members have, a generation is complete and its leader assigns the partitions.
Whoever has not joined by the deadline is out, static members aside: they are missed only after their session time-out.
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
    """A member asks to take part in the next generation."""

    member: Member


class Sync(NamedTuple):
    """The leader brings what each member may read."""

    member: str
    generation: int
    assignments: Mapping[str, Sequence[TopicPartition]]


class Leave(NamedTuple):
    """A member goes, or is found dead."""

    member: str
    reason: str


class Elapse(NamedTuple):
    """Time has passed."""


Event: TypeAlias = Join | Sync | Leave | Elapse


class ActionKind(Enum):
    """What can happen in a group."""

    REMOVED = "removed"
    REPLACED = "replaced"  # by the same static member, started again
    REBALANCE = "rebalance"
    GENERATION = "generation"
    ASSIGNED = "assigned generation"


class Action(NamedTuple):
    """Something that happened: a member that is not one any more, or where the group stands, and why."""

    kind: ActionKind
    subject: str
    reason: str = ""


class GroupStep(NamedTuple):
    """The group after an event, and what happened."""

    group: Group
    actions: tuple[Action, ...] = ()

    def then(self, rule: Callable[..., GroupStep], *arguments: Any) -> GroupStep:
        """What a further rule makes of the group."""
        following = rule(self.group, *arguments)
        return GroupStep(following.group, self.actions + following.actions)


def after(group: Group, event: Event, now_ms: int) -> GroupStep:
    """The group after an event.

    Raises
    ------
    LogError
        When a member joins that shares no assignor with the others, or who assigns is not the leader.
    FencedError, CommitFailedError, RebalanceInProgressError
        When who assigns belongs to an earlier generation, or to none.

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> one = Member("one", ("range",), MemberSubscription(("words",)), 45_000, 300_000)
    >>> step = after(Group("readers"), Join(one), 0)
    >>> step.group.state.value, step.group.generation, step.group.leader
    ('CompletingRebalance', 1, 'one')
    >>> step = after(step.group, Sync("one", 1, {"one": [TopicPartition("words", 0)]}), 0)
    >>> step.group.state.value, str(*step.group.members["one"].assignment)
    ('Stable', 'words-0')
    """
    return _RULES[type(event)](group, event, now_ms)


def _join(group: Group, event: Join, now_ms: int) -> GroupStep:
    newcomer = replace(event.member, joined=True, assignment=())
    _check_strategies(group, newcomer)
    known = group.members.get(newcomer.id)
    former = group.of_instance(newcomer.instance)
    if known is None and former is not None:
        return _replaced(group, former, newcomer, now_ms)
    if known is not None and known.joined and _is_as_before(known, newcomer) and _may_stay(group, known):
        return GroupStep(group)
    joined = _with(group, newcomer)
    reason = f"{newcomer.id} joins" + (" again" if known is not None else "")
    return GroupStep(joined).then(_prepare, newcomer.id, reason, now_ms).then(_complete, now_ms)


def _replaced(group: Group, former: Member, newcomer: Member, now_ms: int) -> GroupStep:
    """A static member was started again: in a stable group it takes its partitions over, and nobody else notices."""
    others = [member for member in group.members.values() if member.id != former.id]
    leader = newcomer.id if group.leader == former.id else group.leader
    gone = Action(ActionKind.REPLACED, former.id, f"{newcomer.instance} was started again")
    if group.state is GroupState.STABLE and _wants_the_same(former, newcomer):
        heir = replace(newcomer, assignment=former.assignment)
        return GroupStep(replace(group.with_members([*others, heir]), leader=leader), (gone,))
    changed = replace(group.with_members([*others, newcomer]), leader=leader)
    step = GroupStep(changed, (gone,)).then(_prepare, newcomer.id, f"{newcomer.id} joins", now_ms)
    return step.then(_complete, now_ms)


def _sync(group: Group, event: Sync, now_ms: int) -> GroupStep:
    check_member(group, event.member, None)
    if event.generation != group.generation or group.state is not GroupState.COMPLETING_REBALANCE:
        raise RebalanceInProgressError(
            f"The group {group.name!r} is not waiting for the assignments of generation {event.generation}: join again."
        )
    if event.member != group.leader:
        raise LogError(f"{event.member} does not lead the group {group.name!r}: {group.leader} assigns.")
    members = [replace(each, assignment=tuple(event.assignments.get(each.id, ()))) for each in group.members.values()]
    stable = replace(group.with_members(members), state=GroupState.STABLE)
    return GroupStep(stable, (Action(ActionKind.ASSIGNED, str(group.generation)),))


def _leave(group: Group, event: Leave, now_ms: int) -> GroupStep:
    if event.member not in group.members:
        return GroupStep(group)
    fewer = group.with_members(member for member in group.members.values() if member.id != event.member)
    gone = Action(ActionKind.REMOVED, event.member, event.reason)
    return GroupStep(fewer, (gone,)).then(_prepare, "", f"{event.member} is gone", now_ms).then(_complete, now_ms)


def _elapse(group: Group, event: Elapse, now_ms: int) -> GroupStep:
    """Give up whom the group waited for too long: members that have not joined, or a leader that has not assigned."""
    if now_ms < group.deadline_ms:
        return GroupStep(group)
    if group.state is GroupState.COMPLETING_REBALANCE:
        return _leave(group, Leave(group.leader, "it led and did not assign within max.poll.interval.ms"), now_ms)
    if group.state is not GroupState.PREPARING_REBALANCE:
        return GroupStep(group)
    late = {id_ for id_, each in group.members.items() if not each.joined and each.instance is None}
    gone = tuple(Action(ActionKind.REMOVED, id_, "it did not join again within max.poll.interval.ms") for id_ in late)
    rest = group.with_members(each for each in group.members.values() if each.id not in late)
    if rest.members and not any(each.joined for each in rest.members.values()):  # static members are waited for
        return GroupStep(replace(rest, deadline_ms=now_ms + _patience_ms(rest)), gone)
    return GroupStep(rest, gone).then(_formed, now_ms)


_RULES: dict[type, Callable[[Group, Any, int], GroupStep]] = {Join: _join, Sync: _sync, Leave: _leave, Elapse: _elapse}


def _prepare(group: Group, joining: str, reason: str, now_ms: int) -> GroupStep:
    """Ask all members to join, but for the one that does."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return GroupStep(group)
    asked = group.with_members(replace(each, joined=each.id == joining) for each in group.members.values())
    deadline = now_ms + _patience_ms(group)
    preparing = replace(asked, state=GroupState.PREPARING_REBALANCE, deadline_ms=deadline)
    return GroupStep(preparing, (Action(ActionKind.REBALANCE, f"after generation {group.generation}", reason),))


def _complete(group: Group, now_ms: int) -> GroupStep:
    """Form the next generation when nobody is missing."""
    return _formed(group, now_ms) if all(each.joined for each in group.members.values()) else GroupStep(group)


def _formed(group: Group, now_ms: int) -> GroupStep:
    """The next generation, of the members that there are."""
    number = group.generation + 1
    action = Action(ActionKind.GENERATION, str(number), f"{len(group.members)} members")
    if not group.members:
        return GroupStep(replace(group, state=GroupState.EMPTY, generation=number, strategy="", leader=""), (action,))
    joined = sorted(each.id for each in group.members.values() if each.joined)
    formed = replace(
        group.with_members(replace(each, assignment=()) for each in group.members.values()),
        state=GroupState.COMPLETING_REBALANCE,
        generation=number,
        strategy=_voted(group),
        leader=group.leader if group.leader in joined else joined[0],
        deadline_ms=now_ms + _patience_ms(group),
    )
    return GroupStep(formed, (action,))


def _voted(group: Group) -> str:
    """The assignor that most members like best of those that all know."""
    shared = _shared(group)
    votes = Counter(next(name for name in each.strategies if name in shared) for each in group.members.values())
    return min(votes, key=lambda name: (-votes[name], name))


def _shared(group: Group) -> set[str]:
    return reduce(set.__and__, (set(each.strategies) for each in group.members.values()))


def _check_strategies(group: Group, newcomer: Member) -> None:
    others = replace(group, members={id_: each for id_, each in group.members.items() if id_ != newcomer.id})
    if others.members and not _shared(others) & set(newcomer.strategies):
        known = ", ".join(sorted(_shared(others)))
        raise LogError(
            f"{newcomer.id} cannot join the group {group.name!r}: its `partition.assignment.strategy` "
            f"({', '.join(newcomer.strategies)}) names none that all members have ({known})."
        )


def _may_stay(group: Group, member: Member) -> bool:
    """Whether a member that joins as before needs no new generation: the leader asks for one by joining."""
    return group.state is not GroupState.STABLE or member.id != group.leader


def _is_as_before(before: Member, now: Member) -> bool:
    return (before.strategies, before.subscription) == (now.strategies, now.subscription)


def _wants_the_same(before: Member, now: Member) -> bool:
    wanted = before.subscription.topics
    wants = now.subscription.topics
    return (before.strategies, wanted) == (now.strategies, wants)


def _patience_ms(group: Group) -> int:
    return max((each.rebalance_ms for each in group.members.values()), default=0)


def _with(group: Group, member: Member) -> Group:
    return replace(group, members={**group.members, member.id: member})

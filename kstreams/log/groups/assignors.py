"""The assignors by the names that `partition.assignment.strategy` gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from kstreams.kernel.batch import TopicPartition
from kstreams.log.groups.subscription import (
    Assign,
    Assignment,
    Members,
    current_owners,
    in_order,
    partitions_of,
    wanted_topics,
)

_Move = tuple[str, str, str]  # from a member, of a topic, to a member


def assign_in_turn(partitions: Mapping[str, int], members: Members) -> Assignment:
    """Hand out one partition after the other; a member that does not subscribe to a topic is passed over.

    Parameters
    ----------
    partitions : mapping of str to int
        How many partitions each topic has.
    members : mapping of str to MemberSubscription

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> shares = assign_in_turn({"a": 3, "b": 3}, {name: MemberSubscription(("a", "b")) for name in ("x", "y")})
    >>> [str(source) for source in shares["x"]], [str(source) for source in shares["y"]]
    (['a-0', 'a-2', 'b-1'], ['a-1', 'b-0', 'b-2'])
    """
    shares: Assignment = {member: [] for member in members}
    order = in_order(members)
    turn = 0
    for topic in wanted_topics(members):
        for source in partitions_of(partitions, topic):
            while topic not in members[order[turn % len(order)]].topics:
                turn += 1
            shares[order[turn % len(order)]].append(source)
            turn += 1
    return shares


def assign_by_range(partitions: Mapping[str, int], members: Members) -> Assignment:
    """Divide each topic among the members that subscribe to it; the first members get one more where it is uneven.

    Parameters
    ----------
    partitions : mapping of str to int
        How many partitions each topic has.
    members : mapping of str to MemberSubscription

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> shares = assign_by_range({"a": 3, "b": 3}, {name: MemberSubscription(("a", "b")) for name in ("x", "y")})
    >>> [str(source) for source in shares["x"]], [str(source) for source in shares["y"]]
    (['a-0', 'a-1', 'b-0', 'b-1'], ['a-2', 'b-2'])
    """
    shares: Assignment = {member: [] for member in members}
    for topic in wanted_topics(members):
        readers = [member for member in in_order(members) if topic in members[member].topics]
        sources = list(partitions_of(partitions, topic))
        least, longer = divmod(len(sources), len(readers))
        for place, member in enumerate(readers):
            start = place * least + min(place, longer)
            shares[member] += sources[start : start + least + (place < longer)]
    return shares


def assign_sticky(partitions: Mapping[str, int], members: Members) -> Assignment:
    """Balance the partitions, and leave as many as possible where they are.

    With equal subscriptions, shares differ by one at most and no partition moves without need.

    Parameters
    ----------
    partitions : mapping of str to int
        How many partitions each topic has.
    members : mapping of str to MemberSubscription

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> held = tuple(TopicPartition("a", number) for number in range(4))
    >>> shares = assign_sticky({"a": 4}, {"x": MemberSubscription(("a",), held, 1), "y": MemberSubscription(("a",))})
    >>> [str(source) for source in shares["x"]], [str(source) for source in shares["y"]]
    (['a-0', 'a-1'], ['a-2', 'a-3'])
    """
    shares = _Shares(partitions, members)
    shares.hand_out()
    shares.balance()
    return shares.assignment()


def assign_cooperatively(partitions: Mapping[str, int], members: Members) -> Assignment:
    """The sticky assignment, less what another member still has: it gives that up first, and joins again.

    Parameters
    ----------
    partitions : mapping of str to int
        How many partitions each topic has.
    members : mapping of str to MemberSubscription

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> held = tuple(TopicPartition("a", number) for number in range(4))
    >>> members = {"x": MemberSubscription(("a",), held, 1), "y": MemberSubscription(("a",))}
    >>> shares = assign_cooperatively({"a": 4}, members)
    >>> [str(source) for source in shares["x"]], shares["y"]
    (['a-0', 'a-1'], [])
    """
    owners = current_owners(members, partitions)
    wanted = assign_sticky(partitions, members)
    return {
        member: [source for source in share if owners.get(source, member) == member] for member, share in wanted.items()
    }


class _Shares:
    """The shares while they are made."""

    def __init__(self, partitions: Mapping[str, int], members: Members) -> None:
        self._order = in_order(members)
        self._readers = {
            topic: [member for member in self._order if topic in members[member].topics]
            for topic in wanted_topics(members)
        }
        self._sources = [source for topic in self._readers for source in partitions_of(partitions, topic)]
        self._owners = current_owners(members, partitions)
        self._held: dict[str, dict[str, list[TopicPartition]]] = {member: {} for member in members}
        self._counts = dict.fromkeys(members, 0)

    def hand_out(self) -> None:
        """Leave what is owned, and give what is not to whoever has least; what few can read comes first."""
        free = []
        for source in self._sources:
            if source in self._owners:
                self._give(source, self._owners[source])
            else:
                free.append(source)
        for source in sorted(free, key=lambda source: (len(self._readers[source.topic]), source)):
            self._give(source, min(self._readers[source.topic], key=self._counts.__getitem__))

    def balance(self) -> None:
        """Move partitions until no path of moves leads from a member to one that has two fewer."""
        while (path := next(filter(None, map(self._way_down, self._heaviest_first())), None)) is not None:
            for giver, topic, taker in path:
                self._give(self._taken(giver, topic), taker)

    def assignment(self) -> Assignment:
        """Member by member, in order."""
        return {member: sorted(chain.from_iterable(held.values())) for member, held in self._held.items()}

    def _heaviest_first(self) -> Iterator[str]:
        least = min(self._counts.values(), default=0)
        heavy = [member for member in self._order if self._counts[member] >= least + 2]
        return iter(sorted(heavy, key=lambda member: -self._counts[member]))

    def _way_down(self, start: str) -> list[_Move] | None:
        """The shortest path of moves from a member to one with at least two fewer, the last of them first."""
        ways: dict[str, list[_Move]] = {start: []}
        level = [start]
        while level:
            following = []
            for giver in level:
                for topic in (topic for topic, held in self._held[giver].items() if held):
                    for taker in self._readers[topic]:
                        if taker not in ways:
                            ways[taker] = [(giver, topic, taker), *ways[giver]]
                            following.append(taker)
            if following:
                lightest = min(following, key=self._counts.__getitem__)
                if self._counts[lightest] <= self._counts[start] - 2:
                    return ways[lightest]
            level = following
        return None

    def _give(self, source: TopicPartition, member: str) -> None:
        self._held[member].setdefault(source.topic, []).append(source)
        self._counts[member] += 1

    def _taken(self, member: str, topic: str) -> TopicPartition:
        """Take a partition of a topic from a member, one that it did not have before where there is one."""
        held = self._held[member][topic]
        place = next((place for place, source in enumerate(held) if self._owners.get(source) != member), -1)
        self._counts[member] -= 1
        return held.pop(place)


class Assignor(NamedTuple):
    """A way to divide partitions, and whether members keep theirs while they join."""

    name: str
    assign: Assign
    cooperative: bool = False


ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_by_range),
        Assignor("roundrobin", assign_in_turn),
        Assignor("sticky", assign_sticky),
        Assignor("cooperative-sticky", assign_cooperatively, cooperative=True),
    )
}


def assignors_named(names: str) -> tuple[Assignor, ...]:
    """The assignors of a list such as `cooperative-sticky` or `range,roundrobin`; ValueError says what is expected.

    Examples
    --------
    >>> [assignor.name for assignor in assignors_named("range, sticky")]
    ['range', 'sticky']
    """
    found = [ASSIGNORS.get(name.strip()) for name in str(names).split(",")]
    known = tuple(assignor for assignor in found if assignor is not None)
    if len(known) < len(found):
        raise ValueError("one or more of " + ", ".join(ASSIGNORS) + ", separated by commas")
    if len({assignor.cooperative for assignor in known}) > 1:
        raise ValueError("assignors that rebalance in the same way: `cooperative-sticky` stands alone")
    return known

"""The assignors of `partition.assignment.strategy`: range, roundrobin, sticky and cooperative-sticky."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from kstreams.kernel.batch import TopicPartition
from kstreams.log.groups import subscription

_Move = tuple[str, str, str]
"""A move of a partition: the giver, the topic, and the receiver."""


def assign_round_robin(partitions: Mapping[str, int], members: subscription.Members) -> subscription.Assignment:
    """Assign one partition to each member in turn, skipping members that do not subscribe to its topic.

    Parameters
    ----------
    partitions : mapping of str to int
        Number of partitions by topic.
    members : mapping of str to MemberSubscription

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> shares = assign_round_robin({"a": 3, "b": 3}, {name: MemberSubscription(("a", "b")) for name in ("x", "y")})
    >>> [str(source) for source in shares["x"]], [str(source) for source in shares["y"]]
    (['a-0', 'a-2', 'b-1'], ['a-1', 'b-0', 'b-2'])
    """
    shares: subscription.Assignment = {member: [] for member in members}
    order = subscription.assignment_order(members)
    turn = 0
    for topic in subscription.subscribed_topics(members):
        for source in subscription.partitions_of(partitions, topic):
            while topic not in members[order[turn % len(order)]].topics:
                turn += 1
            shares[order[turn % len(order)]].append(source)
            turn += 1
    return shares


def assign_by_range(partitions: Mapping[str, int], members: subscription.Members) -> subscription.Assignment:
    """Divide each topic among the members that subscribe to it. The first members get one more if needed.

    Parameters
    ----------
    partitions : mapping of str to int
        Number of partitions by topic.
    members : mapping of str to MemberSubscription

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> shares = assign_by_range({"a": 3, "b": 3}, {name: MemberSubscription(("a", "b")) for name in ("x", "y")})
    >>> [str(source) for source in shares["x"]], [str(source) for source in shares["y"]]
    (['a-0', 'a-1', 'b-0', 'b-1'], ['a-2', 'b-2'])
    """
    shares: subscription.Assignment = {member: [] for member in members}
    for topic in subscription.subscribed_topics(members):
        readers = [member for member in subscription.assignment_order(members) if topic in members[member].topics]
        sources = list(subscription.partitions_of(partitions, topic))
        share, larger_shares = divmod(len(sources), len(readers))
        for number, member in enumerate(readers):
            start = number * share + min(number, larger_shares)
            shares[member] += sources[start : start + share + (number < larger_shares)]
    return shares


def assign_sticky(partitions: Mapping[str, int], members: subscription.Members) -> subscription.Assignment:
    """Balance the partitions, and move as few as possible.

    With equal subscriptions, shares differ by one at most. First, partitions without an owner go to the member with the
    fewest. Then partitions move from members with more to members with fewer, until no move makes the shares more
    equal. With different subscriptions, a move may need further moves between other members.

    Parameters
    ----------
    partitions : mapping of str to int
        Number of partitions by topic.
    members : mapping of str to MemberSubscription

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> owned = tuple(TopicPartition("a", number) for number in range(4))
    >>> shares = assign_sticky({"a": 4}, {"x": MemberSubscription(("a",), owned, 1), "y": MemberSubscription(("a",))})
    >>> [str(source) for source in shares["x"]], [str(source) for source in shares["y"]]
    (['a-0', 'a-1'], ['a-2', 'a-3'])
    """
    shares = _Shares(partitions, members)
    shares.assign_all()
    shares.balance()
    return shares.assignment()


def assign_cooperatively(partitions: Mapping[str, int], members: subscription.Members) -> subscription.Assignment:
    """Assign as `sticky`, without partitions that another member still owns. That member revokes them and joins again.

    Parameters
    ----------
    partitions : mapping of str to int
        Number of partitions by topic.
    members : mapping of str to MemberSubscription

    Examples
    --------
    >>> from kstreams.log.groups.subscription import MemberSubscription
    >>> owned = tuple(TopicPartition("a", number) for number in range(4))
    >>> members = {"x": MemberSubscription(("a",), owned, 1), "y": MemberSubscription(("a",))}
    >>> shares = assign_cooperatively({"a": 4}, members)
    >>> [str(source) for source in shares["x"]], shares["y"]
    (['a-0', 'a-1'], [])
    """
    owners = subscription.current_owners(members, partitions)
    shares = assign_sticky(partitions, members)
    return {
        member: [source for source in share if owners.get(source, member) == member] for member, share in shares.items()
    }


class _Shares:
    """The shares of the members during an assignment."""

    def __init__(self, partitions: Mapping[str, int], members: subscription.Members) -> None:
        self._order = subscription.assignment_order(members)
        self._readers = {
            topic: [member for member in self._order if topic in members[member].topics]
            for topic in subscription.subscribed_topics(members)
        }
        self._sources = [source for topic in self._readers for source in subscription.partitions_of(partitions, topic)]
        self._owners = subscription.current_owners(members, partitions)
        self._assigned: dict[str, dict[str, list[TopicPartition]]] = {member: {} for member in members}
        self._counts = dict.fromkeys(members, 0)

    def assign_all(self) -> None:
        """Assign partitions to their owners, then the others to the members with the fewest.

        Topics with few readers come first.
        """
        unowned = []
        for source in self._sources:
            if source in self._owners:
                self._add(source, self._owners[source])
            else:
                unowned.append(source)
        for source in sorted(unowned, key=lambda source: (len(self._readers[source.topic]), source)):
            self._add(source, min(self._readers[source.topic], key=self._counts.__getitem__))

    def balance(self) -> None:
        """Move partitions until no path of moves leads from a member to one that has two fewer."""
        while (path := next(filter(None, map(self._path_downwards, self._heaviest_members())), None)) is not None:
            for giver, topic, receiver in path:
                self._add(self._remove(giver, topic), receiver)

    def assignment(self) -> subscription.Assignment:
        """Return the partitions of each member, sorted."""
        return {member: sorted(chain.from_iterable(by_topic.values())) for member, by_topic in self._assigned.items()}

    def _heaviest_members(self) -> Iterator[str]:
        least = min(self._counts.values(), default=0)
        heavy = [member for member in self._order if self._counts[member] >= least + 2]
        return iter(sorted(heavy, key=lambda member: -self._counts[member]))

    def _path_downwards(self, start: str) -> list[_Move] | None:
        """Return the shortest path of moves to a member with at least two partitions fewer, the last move first."""
        paths: dict[str, list[_Move]] = {start: []}
        level = [start]
        while level:
            next_level = []
            for giver in level:
                for topic in (topic for topic, sources in self._assigned[giver].items() if sources):
                    for receiver in self._readers[topic]:
                        if receiver not in paths:
                            paths[receiver] = [(giver, topic, receiver), *paths[giver]]
                            next_level.append(receiver)
            if next_level:
                lightest = min(next_level, key=self._counts.__getitem__)
                if self._counts[lightest] <= self._counts[start] - 2:
                    return paths[lightest]
            level = next_level
        return None

    def _add(self, source: TopicPartition, member: str) -> None:
        self._assigned[member].setdefault(source.topic, []).append(source)
        self._counts[member] += 1

    def _remove(self, member: str, topic: str) -> TopicPartition:
        """Remove and return a partition of a topic from a member, preferably one that it did not own before."""
        sources = self._assigned[member][topic]
        number = next((number for number, source in enumerate(sources) if self._owners.get(source) != member), -1)
        self._counts[member] -= 1
        return sources.pop(number)


class Assignor(NamedTuple):
    """An assignor and its name. With a cooperative one, members keep their partitions while they join."""

    name: str
    assign: subscription.Assign
    cooperative: bool = False


ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_by_range),
        Assignor("roundrobin", assign_round_robin),
        Assignor("sticky", assign_sticky),
        Assignor("cooperative-sticky", assign_cooperatively, cooperative=True),
    )
}


def assignors_named(names: str) -> tuple[Assignor, ...]:
    """Return the assignors of a list such as `cooperative-sticky` or `range,roundrobin`.

    Raises ValueError with a description of the expected value.

    Examples
    --------
    >>> [assignor.name for assignor in assignors_named("range, sticky")]
    ['range', 'sticky']
    """
    keys = [name.strip() for name in str(names).split(",")]
    if not ASSIGNORS.keys() >= set(keys):
        raise ValueError("one or more of " + ", ".join(ASSIGNORS) + ", separated by commas")
    assignors = tuple(ASSIGNORS[key] for key in keys)
    if len({assignor.cooperative for assignor in assignors}) > 1:
        raise ValueError("assignors that rebalance in the same way: `cooperative-sticky` without another")
    return assignors

"""`MemberSubscription`: what a member tells its group when it joins, and the partitions that are handed out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from kstreams.kernel.batch import TopicPartition

Assignment = dict[str, list[TopicPartition]]  # by member


class MemberSubscription(msgspec.Struct, frozen=True):
    """What a member wants to read, and what it has.

    Parameters
    ----------
    topics : tuple of str
    owned : tuple of TopicPartition
        What it reads now, and goes on reading until it is told otherwise.
    generation : int
        The generation that gave it those; -1 for a member that has none.
    instance : str or None
        The name of a static member.
    had : tuple of TopicPartition
        What it has given back in order to join, and would have again.
    """

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance: str | None = None
    had: tuple[TopicPartition, ...] = ()


Members = Mapping[str, MemberSubscription]
Assign = Callable[[Mapping[str, int], Members], Assignment]


def in_order(members: Members) -> list[str]:
    """Members in the order of hand-outs: static ones by their lasting names, then the others by their ids."""
    return sorted(members, key=lambda member: (not members[member].instance, members[member].instance or "", member))


def partitions_of(partitions: Mapping[str, int], topic: str) -> Iterator[TopicPartition]:
    """All partitions of a topic; none of one that is not there."""
    return (TopicPartition(topic, number) for number in range(partitions.get(topic, 0)))


def wanted_topics(members: Members) -> list[str]:
    """All topics that any member subscribes to."""
    return sorted({topic for subscription in members.values() for topic in subscription.topics})


def current_owners(members: Members, partitions: Mapping[str, int]) -> dict[TopicPartition, str]:
    """Who owns what; of two members that claim the same, the one of the later generation, and none of the same.

    Examples
    --------
    >>> zero = (TopicPartition("a", 0),)
    >>> members = {"x": MemberSubscription(("a",), zero, 3), "y": MemberSubscription(("a",), zero, 4)}
    >>> current_owners(members, {"a": 1})
    {TopicPartition(topic='a', partition=0): 'y'}
    """
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member, subscription in members.items():
        for source in (*subscription.owned, *subscription.had):
            if source.topic in subscription.topics and source.partition < partitions.get(source.topic, 0):
                claims.setdefault(source, []).append((subscription.generation, member))
    owners = {}
    for source, found in claims.items():
        newest = max(generation for generation, _ in found)
        claimants = {member for generation, member in found if generation == newest}
        if len(claimants) == 1:
            owners[source] = claimants.pop()
    return owners

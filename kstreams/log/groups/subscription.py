"""`MemberSubscription`: the topics and partitions of a member when it joins, and helpers for assignors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from kstreams.kernel.batch import TopicPartition

Assignment = dict[str, list[TopicPartition]]  # by member


class MemberSubscription(msgspec.Struct, frozen=True):
    """The subscription with which a member joins its group.

    Parameters
    ----------
    topics : tuple of str
    owned : tuple of TopicPartition
        The partitions that the member reads until they are revoked.
    generation : int
        The generation of this assignment. -1 for a member without one.
    instance : str or None
        The `group.instance.id` of a static member.
    had : tuple of TopicPartition
        The partitions that the member has revoked before it joins, and should get again.
    """

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance: str | None = None
    had: tuple[TopicPartition, ...] = ()


Members = Mapping[str, MemberSubscription]
Assign = Callable[[Mapping[str, int], Members], Assignment]


def assignment_order(members: Members) -> list[str]:
    """Return the members in the order of assignment: static ones by `group.instance.id`, then the others by id."""
    return sorted(members, key=lambda member: (not members[member].instance, members[member].instance or "", member))


def partitions_of(partitions: Mapping[str, int], topic: str) -> Iterator[TopicPartition]:
    """Return all partitions of a topic. Empty if it does not exist."""
    return (TopicPartition(topic, number) for number in range(partitions.get(topic, 0)))


def subscribed_topics(members: Members) -> list[str]:
    """Return all topics to which any member subscribes, sorted."""
    return sorted({topic for subscription in members.values() for topic in subscription.topics})


def current_owners(members: Members, partitions: Mapping[str, int]) -> dict[TopicPartition, str]:
    """Return the owner of each partition.

    If several members claim a partition, the member of the latest generation owns it. If they are of the same
    generation, nobody owns it.

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
    for source, claims_of_source in claims.items():
        newest = max(generation for generation, _ in claims_of_source)
        claimants = {member for generation, member in claims_of_source if generation == newest}
        if len(claimants) == 1:
            owners[source] = claimants.pop()
    return owners

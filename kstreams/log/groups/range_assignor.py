"""`range`: each topic by itself, neighbouring partitions to one member; so topics with equal counts go together."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.log.groups.subscription import Assignment, Members, in_order, partitions_of, wanted_topics


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

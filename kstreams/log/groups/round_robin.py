"""`roundrobin`: the partitions of all topics in turn."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.log.groups.subscription import Assignment, Members, in_order, partitions_of, wanted_topics


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

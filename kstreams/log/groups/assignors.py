"""The assignors by the names that `partition.assignment.strategy` gives them."""

from __future__ import annotations

from typing import NamedTuple

from kstreams.log.groups.range_assignor import assign_by_range
from kstreams.log.groups.round_robin import assign_in_turn
from kstreams.log.groups.sticky import assign_cooperatively, assign_sticky
from kstreams.log.groups.subscription import Assign


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

"""In which order sub-topologies are processed: after those that feed them, and those of a cycle together. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

Upstream = Mapping[int, Collection[int]]
"""By sub-topology: which ones write what it reads."""


def processing_order(upstream: Upstream) -> list[frozenset[int]]:
    """The sub-topologies in groups, each group after those that feed it.

    Examples
    --------
    >>> [sorted(group) for group in processing_order({0: [], 1: [0, 2], 2: [1], 3: [2]})]
    [[0], [1, 2], [3]]
    """
    before = {sub: reachable(sub, upstream) for sub in upstream}
    cycles = {frozenset({sub, *(other for other in before[sub] if sub in before[other])}) for sub in before}
    return sorted(cycles, key=lambda cycle: (len(before[min(cycle)] - cycle), min(cycle)))


def in_cycles(upstream: Upstream) -> frozenset[int]:
    """The sub-topologies that feed themselves, by way of others or not."""
    return frozenset(sub for sub in upstream if sub in reachable(sub, upstream))


def reachable(start: int, edges: Upstream) -> frozenset[int]:
    """Where the edges lead from a sub-topology."""
    reachable: set[int] = set()
    pending = list(edges[start])
    while pending:
        sub = pending.pop()
        if sub not in reachable:
            reachable.add(sub)
            pending.extend(edges[sub])
    return frozenset(reachable)


def leading_to(targets: Collection[int], upstream: Upstream) -> frozenset[int]:
    """The targets, and the sub-topologies whose records reach one of them.

    Examples
    --------
    >>> sorted(leading_to([2], {0: [], 1: [0], 2: [1], 3: [0]}))
    [0, 1, 2]
    """
    return frozenset(targets).union(*(reachable(target, upstream) for target in targets))

"""Barriers: nodes where a record could overtake others that an operator holds back.

Two kinds of node are a barrier: a node that records also reach by another path, and a node that shares a store or a
topic with the nodes after the operator. Before such a node takes a record, the operator releases its held records. The
results are then those of an operator that holds nothing back. Concurrency is lost only where paths meet. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, SourceNode, SubTopology, TopologyNode, parents_of

Upstream = Mapping[int, Collection[int]]
"""By sub-topology, the sub-topologies that write its source topics."""


def processing_order(upstream: Upstream) -> list[frozenset[int]]:
    """Return the sub-topologies in groups, each group after the sub-topologies that feed it.

    Examples
    --------
    >>> [sorted(group) for group in processing_order({0: [], 1: [0, 2], 2: [1], 3: [2]})]
    [[0], [1, 2], [3]]
    """
    before = {sub: reachable(sub, upstream) for sub in upstream}
    cycles = {frozenset({sub, *(other for other in before[sub] if sub in before[other])}) for sub in before}
    return sorted(cycles, key=lambda cycle: (len(before[min(cycle)] - cycle), min(cycle)))


def in_cycles(upstream: Upstream) -> frozenset[int]:
    """Return the sub-topologies that feed themselves, directly or through others."""
    return frozenset(sub for sub in upstream if sub in reachable(sub, upstream))


def reachable(start: int, edges: Upstream) -> frozenset[int]:
    """Return the sub-topologies that the edges reach from a sub-topology."""
    reachable: set[int] = set()
    pending = list(edges[start])
    while pending:
        sub = pending.pop()
        if sub not in reachable:
            reachable.add(sub)
            pending.extend(edges[sub])
    return frozenset(reachable)


def leading_to(targets: Collection[int], upstream: Upstream) -> frozenset[int]:
    """Return the targets, and the sub-topologies whose records reach one of them.

    Examples
    --------
    >>> sorted(leading_to([2], {0: [], 1: [0], 2: [1], 3: [0]}))
    [0, 1, 2]
    """
    return frozenset(targets).union(*(reachable(target, upstream) for target in targets))


def nodes_after(sub_topology: SubTopology, start: TopologyNode) -> list[TopologyNode]:
    """Return all nodes that a record may reach from a node, parents before children."""
    names = {start.name}
    nodes = []
    for node in sub_topology.nodes:
        if not names.isdisjoint(parents_of(node)):
            names.add(node.name)
            nodes.append(node)
    return nodes


def places_of(node: TopologyNode, sub_topology: SubTopology) -> list[str]:
    """Return the stores and topics that a node uses; a sink that chooses its topic may write to any."""
    if not isinstance(node, SinkNode):
        return list(getattr(node, "stores", ()))
    if isinstance(node.topic, str):
        return [node.topic]
    return ["any topic", *(sink.topic for sink in sub_topology.sinks if isinstance(sink.topic, str))]


def feeding(sub_topology: SubTopology, name: str) -> set[str]:
    """Return the sources whose records reach a node, or a node that shares a store with it; else all sources."""
    nodes = {node.name: node for node in sub_topology.nodes}
    stores = set(getattr(nodes.get(name), "stores", ()))
    together = {other for other, node in nodes.items() if stores & set(getattr(node, "stores", ()))} | {name}
    return {
        source.name
        for source in sub_topology.sources
        if name not in nodes or together & {node.name for node in nodes_after(sub_topology, source)}
    }


class Barrier(NamedTuple):
    """A node that may hold records back; records that a node of `within` (itself or a later one) releases may pass."""

    node: str
    within: tuple[str, ...]


def barriers(sub_topology: SubTopology) -> dict[str, list[Barrier]]:
    """Return for each node the nodes that must hold no records before it takes one."""
    barriers: dict[str, list[Barrier]] = {}
    for node in sub_topology.nodes:
        if _keeps_order(node):
            after = nodes_after(sub_topology, node)
            within = tuple(other.name for other in [node, *after] if _keeps_order(other))
            for overtaken in _overtaken(sub_topology, node, after):
                barriers.setdefault(overtaken, []).append(Barrier(node.name, within))
    return barriers


def _keeps_order(node: TopologyNode) -> bool:
    return isinstance(node, ProcessorNode) and node.operator.keeps_order


def _overtaken(sub_topology: SubTopology, start: TopologyNode, after: list[TopologyNode]) -> list[str]:
    names = {start.name, *(node.name for node in after)}
    touched = {place for node in after for place in places_of(node, sub_topology)}
    joining = [node.name for node in after if not names.issuperset(parents_of(node))]
    other_nodes = (node for node in sub_topology.nodes if node.name not in names and not isinstance(node, SourceNode))
    return [*joining, *(node.name for node in other_nodes if not touched.isdisjoint(places_of(node, sub_topology)))]

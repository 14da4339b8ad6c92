"""Barriers: nodes where a record could overtake others that an operator holds back.

Two kinds of node are a barrier: one that records also reach by another path, and one that shares a store or a topic
with what follows the operator. Before such a node takes a record, the operator releases what it holds back. Results
then are those of an operator that answers at once; only where paths meet does it cost concurrency. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from kstreams.processor.topology.nodes import ProcessorNode, SourceNode, SubTopology, TopologyNode, parents_of
from kstreams.processor.topology.reach import nodes_after, places_of


class Barrier(NamedTuple):
    """A node that may hold records back; what a node of `within` (itself, and others after it) releases may pass."""

    node: str
    within: tuple[str, ...]


def barriers(sub_topology: SubTopology) -> dict[str, list[Barrier]]:
    """By node: which other nodes must hold nothing back before it takes a record."""
    barriers: dict[str, list[Barrier]] = {}
    for node in sub_topology.nodes:
        if _keeps_order(node):
            after = nodes_after(sub_topology, node)
            within = tuple(other.name for other in [node, *after] if _keeps_order(other))
            for met in _met(sub_topology, node, after):
                barriers.setdefault(met, []).append(Barrier(node.name, within))
    return barriers


def _keeps_order(node: TopologyNode) -> bool:
    return isinstance(node, ProcessorNode) and node.operator.keeps_order


def _met(sub_topology: SubTopology, start: TopologyNode, after: list[TopologyNode]) -> list[str]:
    names = {start.name, *(node.name for node in after)}
    touched = {place for node in after for place in places_of(node, sub_topology)}
    joining = [node.name for node in after if not names.issuperset(parents_of(node))]
    other_nodes = (node for node in sub_topology.nodes if node.name not in names and not isinstance(node, SourceNode))
    return [*joining, *(node.name for node in other_nodes if not touched.isdisjoint(places_of(node, sub_topology)))]

"""Where records could overtake those that a step holds back: steps to which another way leads as well. Pure logic.

Such a step, or one that shares a store or a topic with what lies behind, first lets go on what is held back. So results
are those of a step that answers at once; only where ways meet does that cost concurrency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kstreams.processor.context.held_back import HoldBackOperator
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, SourceNode, SubTopology, TopologyNode, parents_of

if TYPE_CHECKING:
    from kstreams.processor.context.held_back import HeldBack


class Barrier(NamedTuple):
    """A step that may hold records back. What comes out of a step `within` (itself, and others behind) may pass."""

    step: str
    within: tuple[str, ...]


def barriers(sub_topology: SubTopology) -> dict[str, list[Barrier]]:
    """By step or sink: which other steps must hold nothing back before it takes a record."""
    found: dict[str, list[Barrier]] = {}
    for node in sub_topology.nodes:
        if _keeps_order(node):
            after = behind(sub_topology, node)
            within = tuple(other.name for other in [node, *after] if _keeps_order(other))
            for met in _met(sub_topology, node, after):
                found.setdefault(met, []).append(Barrier(node.name, within))
    return found


def barrier(found: list[Barrier], delayed: Mapping[str, HeldBack[Any]]) -> Callable[[], None]:
    """What is called before a record is taken."""

    def let_pass() -> None:
        for step, within in found:
            if delayed[step].waiting and not any(delayed[name].is_releasing for name in within):
                delayed[step].release_all()

    return let_pass


def behind(sub_topology: SubTopology, start: TopologyNode) -> list[TopologyNode]:
    """All that a record may reach from a node."""
    names, found = {start.name}, []
    for node in sub_topology.nodes:
        if not names.isdisjoint(parents_of(node)):
            names.add(node.name)
            found.append(node)
    return found


def places(node: TopologyNode, sub_topology: SubTopology) -> list[str]:
    """The stores and topics that a node touches; a sink that chooses its topic may write to any."""
    if not isinstance(node, SinkNode):
        return list(getattr(node, "stores", ()))
    if isinstance(node.topic, str):
        return [node.topic]
    return ["any topic", *(sink.topic for sink in sub_topology.sinks if isinstance(sink.topic, str))]


def _keeps_order(node: TopologyNode) -> bool:
    return isinstance(node, ProcessorNode) and isinstance(node.operator, HoldBackOperator) and node.operator.keeps_order


def _met(sub_topology: SubTopology, start: TopologyNode, after: list[TopologyNode]) -> list[str]:
    names = {start.name, *(node.name for node in after)}
    touched = {place for node in after for place in places(node, sub_topology)}
    reached = [node.name for node in after if not names.issuperset(parents_of(node))]
    others = (node for node in sub_topology.nodes if node.name not in names and not isinstance(node, SourceNode))
    return [*reached, *(node.name for node in others if not touched.isdisjoint(places(node, sub_topology)))]

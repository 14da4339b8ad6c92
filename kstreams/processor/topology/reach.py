"""What the records of a node may reach: the nodes that follow it, and the stores and topics that those touch."""

from __future__ import annotations

from kstreams.processor.topology.nodes import SinkNode, SubTopology, TopologyNode, parents_of


def nodes_after(sub_topology: SubTopology, start: TopologyNode) -> list[TopologyNode]:
    """All nodes that a record may reach from a node, parents before children."""
    names = {start.name}
    nodes = []
    for node in sub_topology.nodes:
        if not names.isdisjoint(parents_of(node)):
            names.add(node.name)
            nodes.append(node)
    return nodes


def places_of(node: TopologyNode, sub_topology: SubTopology) -> list[str]:
    """The stores and topics that a node touches; a sink that chooses its topic may write to any."""
    if not isinstance(node, SinkNode):
        return list(getattr(node, "stores", ()))
    if isinstance(node.topic, str):
        return [node.topic]
    return ["any topic", *(sink.topic for sink in sub_topology.sinks if isinstance(sink.topic, str))]


def feeding(sub_topology: SubTopology, name: str) -> set[str]:
    """The sources from which records reach a node, or one that it shares a store with; all of them for another name."""
    nodes = {node.name: node for node in sub_topology.nodes}
    stores = set(getattr(nodes.get(name), "stores", ()))
    together = {other for other, node in nodes.items() if stores & set(getattr(node, "stores", ()))} | {name}
    return {
        source.name
        for source in sub_topology.sources
        if name not in nodes or together & {node.name for node in nodes_after(sub_topology, source)}
    }

"""`as_data`: a topology as values of JSON."""

from __future__ import annotations

from typing import Any

from kstreams.processor.topology.topology import (
    ProcessorNode,
    SinkNode,
    SourceNode,
    SubTopology,
    Topology,
    TopologyNode,
)

_KINDS: dict[type[TopologyNode], str] = {SourceNode: "source", ProcessorNode: "processor", SinkNode: "sink"}


def as_data(topology: Topology) -> dict[str, Any]:
    """Return sub-topologies with their nodes, stores and topics. Internal topics have no application id as prefix."""
    return {
        "sub_topologies": [_sub_topology(part) for part in topology.sub_topologies],
        "internal_topics": [{"name": topic.name, "kind": topic.kind} for topic in topology.internal_topics],
    }


def _sub_topology(part: SubTopology) -> dict[str, Any]:
    children: dict[str, list[str]] = {node.name: [] for node in part.nodes}
    for node in part.nodes:
        for parent in _parents(node):
            children[parent].append(node.name)
    return {
        "id": part.id,
        "global": part.is_global,
        "nodes": [_node(node, children[node.name]) for node in part.nodes],
        "stores": [{"name": store.name, "kind": store.kind.name, "logging": store.logging} for store in part.stores],
    }


def _node(node: TopologyNode, children: list[str]) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": _KINDS[type(node)],
        "topics": _topics(node),
        "stores": list(getattr(node, "stores", ())),
        "next": children,
        "declared_at": node.declared_at,
    }


def _parents(node: TopologyNode) -> tuple[str, ...]:
    return getattr(node, "parents", ())


def _topics(node: TopologyNode) -> list[str]:
    pattern = getattr(node, "pattern", None)
    if pattern is not None:
        return [f"/{pattern.pattern}/"]
    topic = getattr(node, "topic", None)
    if topic is not None:
        return [topic] if isinstance(topic, str) else ["(chosen per record)"]
    return list(getattr(node, "topics", ()))

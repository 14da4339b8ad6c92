"""A topology as data (for `--format json`) and as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator
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
_SHAPES = {"source": ("([", "])"), "processor": ("[", "]"), "sink": ("([", "])")}


def as_data(topology: Topology) -> dict[str, Any]:
    """Sub-topologies with their nodes, stores and topics; internal topics lack the application id in front."""
    return {
        "sub_topologies": [_sub_topology(part) for part in topology.sub_topologies],
        "internal_topics": [{"name": topic.name, "kind": topic.kind} for topic in topology.internal_topics],
    }


def as_mermaid(topology: Topology) -> str:
    """A Mermaid flowchart: a box per sub-topology, topics between them."""
    data = as_data(topology)
    return "\n".join(["flowchart TD", *(line for part in data["sub_topologies"] for line in _flowchart(part))])


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


def _flowchart(part: dict[str, Any]) -> Iterator[str]:
    title = "Global table" if part["global"] else "Sub-topology"
    yield f'  subgraph sub{part["id"]}["{title} {part["id"]}"]'
    for node in part["nodes"]:
        opening, closing = _SHAPES[node["kind"]]
        yield f'    {_id(node["name"])}{opening}"{node["name"]}"{closing}'
    yield "  end"
    for node in part["nodes"]:
        yield from (f"  {_id(node['name'])} --> {_id(child)}" for child in node["next"])
        yield from _around(node)


def _around(node: dict[str, Any]) -> Iterator[str]:
    """The topics and stores that a node touches."""
    for topic in node["topics"]:
        shown = f'{_id("topic " + topic)}[["{topic}"]]'
        yield f"  {_id(node['name'])} --> {shown}" if node["kind"] == "sink" else f"  {shown} --> {_id(node['name'])}"
    for store in node["stores"]:
        yield f'  {_id(node["name"])} <--> {_id("store " + store)}[("{store}")]'


def _id(name: str) -> str:
    """A Mermaid identifier, different for different names.

    Examples
    --------
    >>> _id("topic a-b")
    'topic_20a_2db'
    """
    return "".join(letter if letter.isalnum() and letter.isascii() else f"_{ord(letter):x}" for letter in name)

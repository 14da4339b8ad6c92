"""Merges streams of the same topics into one source, so that a topic is read once."""

from __future__ import annotations

from dataclasses import replace

from kstreams.dsl.graph import LogicalGraph, Node, StreamSource
from kstreams.errors import TopologyError


def merge_sources(graph: LogicalGraph) -> LogicalGraph:
    """Return the graph in which readers of a repeated source read the first source of the same topics.

    Raises
    ------
    TopologyError
        If sources of the same topics have different offset resets or idle times.
    """
    first: dict[object, StreamSource] = {}
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph:
        if isinstance(node, StreamSource):
            first_source = first.setdefault(_subscription(node), node)
            if first_source is not node:
                _check_same(first_source, node)
                renamed[node.name] = first_source.name
                continue
        nodes.append(replace(node, parents=tuple(renamed.get(parent, parent) for parent in node.parents)))
    return LogicalGraph(nodes)


def _subscription(source: StreamSource) -> object:
    return (source.pattern.pattern, source.pattern.flags) if source.pattern else frozenset(source.topics)


def _check_same(first_source: StreamSource, other: StreamSource) -> None:
    for attribute, name in (("offset_reset", "offset_reset"), ("idle_ms", "idle")):
        if getattr(first_source.consumed, attribute) != getattr(other.consumed, attribute):
            raise TopologyError(
                f"{first_source} and {other} read the same topics with different {name}: "
                "read them once, or agree on one"
            )

"""Streams of the same topics become one source: a topic is read once."""

from __future__ import annotations

from dataclasses import replace

from kstreams.dsl.graph import LogicalGraph, Node, StreamSource
from kstreams.errors import TopologyError


def merge_sources(graph: LogicalGraph) -> LogicalGraph:
    """The graph in which what reads a repeated source reads the first of its kind.

    Raises
    ------
    TopologyError
        When sources share some but not all of their topics, or ask for different offset resets or idle times.
    """
    first: dict[object, StreamSource] = {}
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph:
        if isinstance(node, StreamSource):
            first_source = first.setdefault(_what_is_read(node), node)
            if first_source is not node:
                _check_same(first_source, node)
                renamed[node.name] = first_source.name
                continue
        nodes.append(replace(node, parents=tuple(renamed.get(parent, parent) for parent in node.parents)))
    return LogicalGraph(nodes)


def _what_is_read(source: StreamSource) -> object:
    return (source.pattern.pattern, source.pattern.flags) if source.pattern else frozenset(source.topics)


def _check_same(first_source: StreamSource, other: StreamSource) -> None:
    for attribute, name in (("offset_reset", "offset_reset"), ("idle_ms", "idle")):
        if getattr(first_source.consumed, attribute) != getattr(other.consumed, attribute):
            raise TopologyError(
                f"{first_source} and {other} read the same topics with different {name}: "
                "read them once, or agree on one"
            )

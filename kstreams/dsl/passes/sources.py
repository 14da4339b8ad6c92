"""Passes over sources: the defaults of the configuration, and one source for streams of the same topics."""

from __future__ import annotations

from dataclasses import replace

from kstreams.config import Config
from kstreams.dsl.graph import GlobalStore, GlobalTableSource, LogicalGraph, Node, StreamSource, TableSource
from kstreams.errors import TopologyError
from kstreams.kernel.timestamps import extractor_of


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


def source_defaults(graph: LogicalGraph, config: Config) -> LogicalGraph:
    """Return the graph whose sources have the serdes and timestamp extractors of the configuration as defaults."""
    return LogicalGraph(_with_defaults(node, config) for node in graph)


def _with_defaults(node: Node, config: Config) -> Node:
    if not isinstance(node, StreamSource | TableSource | GlobalTableSource | GlobalStore):
        return node
    consumed = node.consumed
    extractor = consumed.timestamp_extractor or extractor_of(config["default.timestamp.extractor"])
    key = config["default.key.serde"] if consumed.key is None else consumed.key
    value = config["default.value.serde"] if consumed.value is None else consumed.value
    return replace(node, consumed=replace(consumed, key=key, value=value, timestamp_extractor=extractor))

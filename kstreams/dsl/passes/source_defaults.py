"""Sources that say nothing about types or event time get what the configuration says."""

from __future__ import annotations

from dataclasses import replace

from kstreams.config import Config
from kstreams.dsl.graph import GlobalStore, GlobalTableSource, LogicalGraph, Node, StreamSource, TableSource
from kstreams.kernel.timestamps import extractor_of


def source_defaults(graph: LogicalGraph, config: Config) -> LogicalGraph:
    """The graph in which no source is silent where the configuration is not."""
    return LogicalGraph(_filled(node, config) for node in graph)


def _filled(node: Node, config: Config) -> Node:
    if not isinstance(node, StreamSource | TableSource | GlobalTableSource | GlobalStore):
        return node
    consumed = node.consumed
    extractor = consumed.timestamp_extractor or extractor_of(config["default.timestamp.extractor"])
    key = config["default.key.serde"] if consumed.key is None else consumed.key
    value = config["default.value.serde"] if consumed.value is None else consumed.value
    return replace(node, consumed=replace(consumed, key=key, value=value, timestamp_extractor=extractor))

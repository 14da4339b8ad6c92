"""The passes that `topology.optimization` names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kstreams.config import Config
from kstreams.dsl.graph import GlobalStore, GlobalTableSource, LogicalGraph, Node, StreamSource, TableSource
from kstreams.dsl.passes.merge_repartitions import merge_repartitions
from kstreams.dsl.passes.single_store_self_join import single_store_self_join
from kstreams.kernel.timestamps import extractor_of


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


def reuse_source_topics(graph: LogicalGraph) -> LogicalGraph:
    """Return the graph in which tables of topics, except versioned ones, are restored from their topics."""
    return LogicalGraph(_restored_from_source(node) for node in graph)


def _restored_from_source(node: Node) -> Node:
    if isinstance(node, TableSource) and node.materialized.history_retention_ms is None:
        return replace(node, restored_from_source=True)
    return node


OPTIMIZATIONS: dict[str, Callable[[LogicalGraph], LogicalGraph]] = {
    "reuse.ktable.source.topics": reuse_source_topics,
    "merge.repartition.topics": merge_repartitions,
    "single.store.self.join": single_store_self_join,
}
"""By name, in the order in which they are applied."""


def optimize(graph: LogicalGraph, setting: str) -> LogicalGraph:
    """Apply the passes of a checked setting: `none`, `all`, or names with commas between."""
    chosen = OPTIMIZATIONS if setting == "all" else setting.split(",")
    for name, apply in OPTIMIZATIONS.items():
        if name in chosen:
            graph = apply(graph)
    return graph

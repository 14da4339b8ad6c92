"""The passes that `topology.optimization` names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kstreams.dsl.graph import (
    LogicalGraph,
    Node,
    OuterSelfJoin,
    OuterStreamJoin,
    SelfJoin,
    StreamJoin,
    TableSource,
    declare,
)
from kstreams.dsl.passes.merge_repartitions import merge_repartitions


def reuse_source_topics(graph: LogicalGraph) -> LogicalGraph:
    """Return the graph in which tables of topics, except versioned ones, are restored from their topics."""
    return LogicalGraph(_restored_from_source(node) for node in graph)


def _restored_from_source(node: Node) -> Node:
    if isinstance(node, TableSource) and node.materialized.history_retention_ms is None:
        return replace(node, restored_from_source=True)
    return node


def single_store_self_join(graph: LogicalGraph) -> LogicalGraph:
    """Return the graph in which joins of a stream with itself are self-joins, with one store.

    Left and outer joins are rewritten too, as in Kafka Streams: every record without a null matches itself.
    """
    return LogicalGraph(_as_self_join(node) for node in graph)


def _as_self_join(node: Node) -> Node:
    if not isinstance(node, StreamJoin) or len(set(node.parents)) > 1:
        return node
    kind = OuterSelfJoin if isinstance(node, OuterStreamJoin) else SelfJoin
    joined = kind(
        joiner=node.joiner,
        with_key=node.with_key,
        windows=node.windows,
        windowed=node.names.this_windowed,
        store=node.names.this_store,
        key=node.key,
        value=node.value,
        other_value=node.other_value,
        result=node.result,
    )
    return declare(joined, node.name, node.parents, node.declared_at)


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

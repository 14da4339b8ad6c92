"""Gives joins of a stream with itself one store (`single.store.self.join`).

Left and outer joins are rewritten too, as in Kafka Streams: every record without a null matches itself.
"""

from __future__ import annotations

from kstreams.dsl.graph import LogicalGraph, Node, OuterSelfJoin, OuterStreamJoin, SelfJoin, StreamJoin, declare


def single_store_self_join(graph: LogicalGraph) -> LogicalGraph:
    """Return the graph in which joins of a stream with itself are self-joins."""
    return LogicalGraph(_rewritten(node) for node in graph)


def _rewritten(node: Node) -> Node:
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

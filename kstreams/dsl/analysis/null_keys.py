"""Which repartitions must let null keys pass: those before a join that gives them a result (KIP-962)."""

from __future__ import annotations

from kstreams.dsl.graph import LogicalGraph, Node, Repartition


def repartitions_with_null_keys(graph: LogicalGraph) -> frozenset[str]:
    """Names of the repartitions with a join anywhere after them that takes null keys; all others drop such records."""
    return frozenset(node.name for node in graph if isinstance(node, Repartition) and _relaxed(graph, node))


def _relaxed(graph: LogicalGraph, repartition: Node) -> bool:
    return any(node.takes_null_keys for node in graph.downstream(repartition))

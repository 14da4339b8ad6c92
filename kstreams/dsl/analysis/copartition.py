"""Which topics must have the same number of partitions: those whose records meet in a join."""

from __future__ import annotations

from kstreams.dsl.graph import LogicalGraph, Node, Repartition, StreamSource, TableRepartition, TableSource
from kstreams.dsl.graph.table_joins import ForeignKeyJoin


def repartitions_with_null_keys(graph: LogicalGraph) -> frozenset[str]:
    """Names of the repartitions with a join anywhere after them that takes null keys; all others drop such records."""
    return frozenset(node.name for node in graph if isinstance(node, Repartition) and _relaxed(graph, node))


def _relaxed(graph: LogicalGraph, repartition: Node) -> bool:
    return any(node.takes_null_keys for node in graph.downstream(repartition))


_READ_FROM_TOPICS = (Repartition, TableRepartition, ForeignKeyJoin)


def topics_behind(graph: LogicalGraph, node: Node) -> tuple[str, ...]:
    """The topics from which records reach a node without passing another topic; those of patterns are left out."""
    groups: list[str] = []
    for behind in graph.upstream(node, through=lambda passed: not isinstance(passed, _READ_FROM_TOPICS)):
        if isinstance(behind, StreamSource):
            groups.extend(behind.topics)
        elif isinstance(behind, TableSource | Repartition | TableRepartition):
            groups.append(behind.topic)
        elif isinstance(behind, ForeignKeyJoin):  # the right table lies behind the topic of responses
            groups.extend((*topics_behind(graph, graph.parents(behind)[0]), behind.names.response.topic))
    return tuple(dict.fromkeys(groups))

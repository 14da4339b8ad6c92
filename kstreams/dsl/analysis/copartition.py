"""Facts for copartitioning: the topics behind a node, and the repartitions that pass null keys on."""

from __future__ import annotations

from kstreams.dsl.graph import LogicalGraph, Node, Repartition, StreamSource, TableRepartition, TableSource
from kstreams.dsl.graph.table_joins import ForeignKeyJoin


def repartitions_with_null_keys(graph: LogicalGraph) -> frozenset[str]:
    """Return the names of the repartitions before a join that takes null keys; all others drop these records."""
    return frozenset(node.name for node in graph if isinstance(node, Repartition) and _passes_null_keys(graph, node))


def _passes_null_keys(graph: LogicalGraph, repartition: Node) -> bool:
    return any(node.takes_null_keys for node in graph.downstream(repartition))


_READING_TOPICS = (Repartition, TableRepartition, ForeignKeyJoin)


def topics_behind(graph: LogicalGraph, node: Node) -> tuple[str, ...]:
    """Return the topics from which records reach a node without passing another topic; omit topics of patterns."""
    topics: list[str] = []
    for source in graph.upstream(node, through=lambda other: not isinstance(other, _READING_TOPICS)):
        if isinstance(source, StreamSource):
            topics.extend(source.topics)
        elif isinstance(source, TableSource | Repartition | TableRepartition):
            topics.append(source.topic)
        elif isinstance(source, ForeignKeyJoin):  # the right table is behind the response topic
            topics.extend((*topics_behind(graph, graph.parents(source)[0]), source.names.response.topic))
    return tuple(dict.fromkeys(topics))

"""Which topics must have the same number of partitions: those whose records meet in a join."""

from __future__ import annotations

from kstreams.dsl.graph import LogicalGraph, Node, Repartition, StreamSource, TableRepartition, TableSource


def topics_behind(graph: LogicalGraph, node: Node) -> tuple[str, ...]:
    """The topics from which records reach a node without passing another topic; those of patterns are left out."""
    found: list[str] = []
    for behind in graph.upstream(node, through=lambda passed: not isinstance(passed, Repartition | TableRepartition)):
        if isinstance(behind, StreamSource):
            found.extend(behind.topics)
        elif isinstance(behind, TableSource | Repartition | TableRepartition):
            found.append(behind.topic)
    return tuple(dict.fromkeys(found))

"""A table that reads a topic is restored from that topic: it needs no changelog (`reuse.ktable.source.topics`).

A table with history keeps its changelog: of the topic, compaction may leave the last record of each key alone.
"""

from __future__ import annotations

from dataclasses import replace

from kstreams.dsl.graph import LogicalGraph, Node, TableSource


def reuse_source_topics(graph: LogicalGraph) -> LogicalGraph:
    """The graph in which every table of a topic, unless it keeps history, is its topic's mirror."""
    return LogicalGraph(_mirror(node) for node in graph)


def _mirror(node: Node) -> Node:
    if isinstance(node, TableSource) and node.materialized.history_retention_ms is None:
        return replace(node, restored_from_source=True)
    return node

"""A table that reads a topic is restored from that topic: it needs no changelog (`reuse.ktable.source.topics`)."""

from __future__ import annotations

from dataclasses import replace

from kstreams.dsl.graph import LogicalGraph, TableSource


def reuse_source_topics(graph: LogicalGraph) -> LogicalGraph:
    """The graph in which every table of a topic is its topic's mirror."""
    return LogicalGraph(
        replace(node, restored_from_source=True) if isinstance(node, TableSource) else node for node in graph
    )

"""Which sources of the user feed a source, and what was declared about their idleness."""

from __future__ import annotations

from kstreams.dsl.graph import LogicalGraph, Node


def idle_limits(graph: LogicalGraph, node: Node) -> tuple[int | None, ...]:
    """The `idle=` (ms) of the sources whose records come out of a node, itself included; None: not declared."""
    idle_times: dict[str, int | None] = {}
    pending = [node]
    while pending:
        part = pending.pop()
        pending += [graph[parent] for parent in part.parents]
        consumed = getattr(part, "consumed", None)
        if consumed is not None:
            idle_times[part.name] = consumed.idle_ms
    return tuple(dict.fromkeys(idle_times.values())) or (None,)

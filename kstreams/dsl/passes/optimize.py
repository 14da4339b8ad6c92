"""The passes that `topology.optimization` names."""

from __future__ import annotations

from collections.abc import Callable

from kstreams.dsl.graph import LogicalGraph
from kstreams.dsl.passes.merge_repartitions import merge_repartitions
from kstreams.dsl.passes.reuse_source_topics import reuse_source_topics
from kstreams.dsl.passes.single_store_self_join import single_store_self_join

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

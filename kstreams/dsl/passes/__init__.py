"""Passes over the logical graph, each a pure function from graph to graph in its own file."""

from kstreams.dsl.passes.merge_repartitions import merge_repartitions
from kstreams.dsl.passes.merge_sources import merge_sources
from kstreams.dsl.passes.optimize import OPTIMIZATIONS, optimize, reuse_source_topics, source_defaults
from kstreams.dsl.passes.single_store_self_join import single_store_self_join

__all__ = [
    "OPTIMIZATIONS",
    "merge_repartitions",
    "merge_sources",
    "optimize",
    "reuse_source_topics",
    "single_store_self_join",
    "source_defaults",
]

"""Passes over the logical graph: pure functions from graph to graph."""

from kstreams.dsl.passes.merge_repartitions import merge_repartitions
from kstreams.dsl.passes.optimize import OPTIMIZATIONS, optimize, reuse_source_topics, single_store_self_join
from kstreams.dsl.passes.sources import merge_sources, source_defaults

__all__ = [
    "OPTIMIZATIONS",
    "merge_repartitions",
    "merge_sources",
    "optimize",
    "reuse_source_topics",
    "single_store_self_join",
    "source_defaults",
]

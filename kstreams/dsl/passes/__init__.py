"""Passes over the logical graph, each a pure function from graph to graph in its own file; applied in this order."""

from collections.abc import Callable

from kstreams.dsl.graph import LogicalGraph
from kstreams.dsl.passes.merge_sources import merge_sources

PASSES: tuple[Callable[[LogicalGraph], LogicalGraph], ...] = (merge_sources,)

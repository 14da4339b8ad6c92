"""`TypedGraph`: a logical graph with its types, for checks and rules of the relational path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kstreams.dsl.analysis.copartition import repartitions_with_null_keys
from kstreams.dsl.analysis.facts import flow_types
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.graph import LogicalGraph, Node


@dataclass(frozen=True)
class TypedGraph:
    """A logical graph and the types of its records."""

    graph: LogicalGraph

    @cached_property
    def types(self) -> dict[str, Types]:
        """The output types of every node."""
        return dict(flow_types(self.graph))

    @cached_property
    def with_null_keys(self) -> frozenset[str]:
        """The repartitions that records without a key pass through."""
        return repartitions_with_null_keys(self.graph)

    def of_parent(self, node: Node, position: int = 0) -> Types:
        """Return the input types of a node."""
        return self.types[node.parents[position]]

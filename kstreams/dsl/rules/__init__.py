"""The rules LogicalGraph -> Topology: importing this package fills the rule book."""

from kstreams.dsl.rules import aggregates, sinks, sources, stateless, tables

__all__ = ["aggregates", "sinks", "sources", "stateless", "tables"]

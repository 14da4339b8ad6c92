"""The rules LogicalGraph -> Topology: importing this package fills the rule book."""

from kstreams.dsl.rules import aggregates, joins, processors, sinks, sources, stateless, suppress, table_groups, tables

__all__ = ["aggregates", "joins", "processors", "sinks", "sources", "stateless", "suppress", "table_groups", "tables"]

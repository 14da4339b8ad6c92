"""The rules LogicalGraph -> Topology: importing this package fills the rule book."""

from kstreams.dsl.rules import (
    aggregates,
    cogroups,
    foreign_key_joins,
    joins,
    processors,
    self_joins,
    sinks,
    sources,
    stateless,
    suppress,
    table_groups,
    table_joins,
    tables,
    windows,
)

__all__ = [
    "aggregates",
    "cogroups",
    "foreign_key_joins",
    "joins",
    "processors",
    "self_joins",
    "sinks",
    "sources",
    "stateless",
    "suppress",
    "table_groups",
    "table_joins",
    "tables",
    "windows",
]

"""The operators of kstreams, a family per file; importing this package registers them and the kinds of windows."""

from kstreams.dsl import builtin_windows  # noqa: F401 (registers them)
from kstreams.dsl.operator import register
from kstreams.dsl.rules import (
    aggregates,
    cogroups,
    foreign_key_joins,
    headers,
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
from kstreams.dsl.rules.topology import topology_of

__all__ = ["topology_of"]

FAMILIES = (
    sources,
    stateless,
    headers,
    sinks,
    aggregates,
    windows,
    suppress,
    cogroups,
    joins,
    self_joins,
    tables,
    table_groups,
    table_joins,
    foreign_key_joins,
    processors,
)

for family in FAMILIES:
    for descriptor in family.OPERATORS:
        register(descriptor)

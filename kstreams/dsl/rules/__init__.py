"""The operators of kstreams, a family per file; importing this package registers them and the kinds of windows."""

from __future__ import annotations

from collections.abc import Iterable

from kstreams.dsl import builtin_windows  # noqa: F401 (registers them)
from kstreams.dsl.analysis.facts import flow_types, table_facts
from kstreams.dsl.graph import LogicalGraph
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import operators, register
from kstreams.dsl.rules import (
    aggregates,
    cogroups,
    foreign_key_joins,
    joins,
    processors,
    sources,
    stateless,
    suppress,
    table_groups,
    table_joins,
    tables,
    waits,
    windows,
)
from kstreams.processor.topology.feeds import Feed
from kstreams.processor.topology.topology import Topology
from kstreams.state.api import StoreBuilder

FAMILIES = (
    sources,
    stateless,
    aggregates,
    windows,
    suppress,
    cogroups,
    joins,
    tables,
    table_groups,
    table_joins,
    foreign_key_joins,
    processors,
    waits,
)

for family in FAMILIES:
    for descriptor in family.OPERATORS:
        register(descriptor)


def topology_of(
    graph: LogicalGraph,
    stores: Iterable[StoreBuilder] = (),
    feeds: Iterable[Feed] = (),
    default_store: str = "rocksdb",
) -> Topology:
    """Return the topology of a graph: each node adds itself by the rule of its type.

    Parameters
    ----------
    stores, default_store
        As for `Lowering`.
    feeds : iterable of Feed
        The DataFrames whose rows fill topics.
    """
    build = Lowering(graph, flow_types(graph), table_facts(graph), stores, default_store)
    for feed in feeds:
        build.topology.add_feed(feed)
    for node in graph:
        build.apply(node, operators.of(node).topology)
    return build.topology

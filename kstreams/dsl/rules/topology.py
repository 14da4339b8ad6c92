"""`topology_of`: from the logical graph to the topology, by the rule of every node."""

from __future__ import annotations

from collections.abc import Iterable

from kstreams.dsl.analysis.facts import flow_types, table_facts
from kstreams.dsl.graph import LogicalGraph
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import operators
from kstreams.processor.topology.feeds import Feed
from kstreams.processor.topology.topology import Topology
from kstreams.state.api import StoreBuilder


def topology_of(
    graph: LogicalGraph,
    stores: Iterable[StoreBuilder] = (),
    feeds: Iterable[Feed] = (),
    default_store: str = "rocksdb",
) -> Topology:
    """The topology of a graph. `feeds` are the DataFrames that fill topics; other parameters as for `Lowering`."""
    build = Lowering(graph, flow_types(graph), table_facts(graph), stores, default_store)
    for feed in feeds:
        build.topology.add_feed(feed)
    for node in graph:
        build.apply(node, operators.of(node).topology)
    return build.topology

"""Facts about a whole graph: the types of its operators, and the stores and old values that its tables need."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.dsl.analysis.tables import TableDemands, TableFacts, versioned_tables
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.graph import LogicalGraph
from kstreams.dsl.graph.node import Keys, Node
from kstreams.dsl.operator import operators


def repartition_required(nodes: Mapping[str, Node], node: Node) -> bool:
    """Return whether an operator on a path to `node` changed keys after they were last in place.

    Parameters
    ----------
    nodes : mapping of str to Node
        The nodes that are declared so far.
    node : Node
        The operator whose output is grouped or joined.
    """
    pending = [node]
    visited = {node.name}
    while pending:
        current = pending.pop()
        if current.keys is Keys.CHANGED:
            return True
        if current.keys is Keys.KEPT:
            parents = [nodes[name] for name in current.parents if name not in visited]
            visited.update(parent.name for parent in parents)
            pending.extend(parents)
    return False


def flow_types(graph: LogicalGraph) -> Mapping[str, Types]:
    """Return the types of every operator's output, by name."""
    flow: dict[str, Types] = {}
    for node in graph:
        flow[node.name] = operators.of(node).types(node, tuple(flow[parent] for parent in node.parents))
    return flow


def table_facts(graph: LogicalGraph) -> TableFacts:
    """Return which tables of a graph need a store, send old values, or are versioned."""
    materialization = {node.name: operators.of(node).materialization for node in graph}
    tables = TableDemands(graph, materialization)
    for node in graph:
        tables.declare(node)
        rule = operators.of(node).tables
        if rule is not None:
            rule(node, tables, graph.parents(node))
    materialized = frozenset(tables.materialized)
    return TableFacts(
        materialized, frozenset(tables.sending_old_values), versioned_tables(graph, materialization, materialized)
    )

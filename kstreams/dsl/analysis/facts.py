"""What is known of a whole graph: the types that flow through it, and what its tables keep and send."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.dsl.analysis.tables import TableDemands, TableFacts, versioned_tables
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.graph import LogicalGraph
from kstreams.dsl.graph.node import Keys, Node
from kstreams.dsl.operator import operators


def repartition_required(nodes: Mapping[str, Node], node: Node) -> bool:
    """Whether a key was changed on any path to `node` since keys were last in place.

    Parameters
    ----------
    nodes : mapping of str to Node
        The graph so far.
    node : Node
        Whose output is to be grouped or joined.
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
    """The types of every operator's output, by name."""
    flow: dict[str, Types] = {}
    for node in graph:
        flow[node.name] = operators.of(node).types(node, tuple(flow[parent] for parent in node.parents))
    return flow


def table_facts(graph: LogicalGraph) -> TableFacts:
    """What the tables of a graph must keep and send."""
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

"""Which tables without a name need a store, and which tables send old values together with new ones.

The readers of a table decide both: a join looks rows up, a regrouping or `suppress` needs old values. The rules are
applied in order of declaration, as in Kafka Streams: a filter sends old values only if its parent does by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.materialized import Materialized


class Materialization(Enum):
    """When a table has a store of its rows."""

    ALWAYS = "always"
    ON_DEMAND = "on demand"  # if it is named or looked up, or its old values are needed
    IF_NAMED = "if named"  # otherwise it is a view of its parent
    JOINED = "joined"  # if named, otherwise a view of both parents; its old values need those of both parents


_VIEWS = (Materialization.IF_NAMED, Materialization.JOINED)


@dataclass(frozen=True)
class TableFacts:
    """The names of the tables that have a store, that send old values, and that are versioned."""

    materialized: frozenset[str]
    sending_old_values: frozenset[str]
    versioned: frozenset[str]


class TableDemands:
    """The stores and old values that operators demand of the tables that they read.

    Parameters
    ----------
    graph : LogicalGraph
    materialization : mapping of str to Materialization or None
        By name of the operator; None for an operator that is no table.
    """

    def __init__(self, graph: LogicalGraph, materialization: Mapping[str, Materialization | None]) -> None:
        self._graph = graph
        self._materialization = materialization
        self.materialized: set[str] = set()
        self.sending_old_values: set[str] = set()

    def declare(self, node: Node) -> None:
        """Give a table its store if it always has one, or if the user named it."""
        materialization = self._materialization[node.name]
        if materialization is Materialization.ALWAYS or (
            materialization is not None and materialized_of(node).name is not None
        ):
            self.materialized.add(node.name)

    def has_store(self, table: Node) -> bool:
        """Return whether a table has a store of its own by now."""
        return table.name in self.materialized

    def look_up(self, table: Node) -> None:
        """Demand that rows can be looked up by key: in a store of the table, or of the tables of which it is a view."""
        if self.has_store(table):
            return
        if self._materialization[table.name] in _VIEWS:
            for parent in self._graph.parents(table):
                self.look_up(parent)
        else:
            self.materialized.add(table.name)

    def send_old_values(self, table: Node, *, force: bool) -> bool:
        """Demand old values, and return whether the table sends them. Without `force`, it gets no store for this."""
        if self._materialization[table.name] is Materialization.JOINED:
            for parent in self._graph.parents(table):
                self.send_old_values(parent, force=True)
        elif not self.has_store(table) and not self._old_values_without_store(table, force):
            return False
        self.sending_old_values.add(table.name)
        return True

    def _old_values_without_store(self, table: Node, force: bool) -> bool:
        if self._materialization[table.name] is Materialization.IF_NAMED:
            return self.send_old_values(self._graph.parents(table)[0], force=force)
        if force:
            self.materialized.add(table.name)
        return force


TableRule = Callable[[Any, TableDemands, tuple[Node, ...]], None]
"""`rule(node, tables, parents)`: demands what a node needs of the tables among its parents."""


def versioned_tables(
    graph: LogicalGraph, materialization: Mapping[str, Materialization | None], materialized: frozenset[str]
) -> frozenset[str]:
    """Return the names of the versioned tables: by their own store or, for a view without a store, by its parent."""
    names: set[str] = set()
    for node in graph:
        if node.name in materialized:
            has_history = materialized_of(node).history_retention_ms is not None
        else:
            has_history = materialization[node.name] is Materialization.IF_NAMED and node.parents[0] in names
        if has_history:
            names.add(node.name)
    return frozenset(names)


def materialized_of(table: Node) -> Materialized:
    """Return the settings of the user for the store of a table."""
    materialized: Materialized = table.materialized  # type: ignore[attr-defined]  # every table node has it
    return materialized

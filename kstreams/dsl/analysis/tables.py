"""Which tables are kept in a store although unnamed, and which must send old values along with new ones.

Both follow from what reads a table: a join looks rows up, a regrouping or `suppress` needs old values. The rules
are applied in the order of declaration, as in Kafka Streams: a filter sends old values only if its parent does by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.materialized import Materialized


class Materialization(Enum):
    """How a table node keeps its rows."""

    ALWAYS = "always"
    ON_DEMAND = "on demand"  # when named, looked up or old values are needed
    IF_NAMED = "if named"  # else it is a view of its parent
    JOINED = "joined"  # if named, else a view of both its parents, on whose old values its own depend in either case


_VIEWS = (Materialization.IF_NAMED, Materialization.JOINED)


@dataclass(frozen=True)
class TableFacts:
    """Names of the tables that have a store, of those that send old values, and of those whose rows have a history."""

    materialized: frozenset[str]
    sending_old_values: frozenset[str]
    versioned: frozenset[str]


class TableDemands:
    """What the operators so far need of the tables they read.

    Parameters
    ----------
    graph : LogicalGraph
    keeping : mapping of str to Keeping or None
        By name of the operator: how a table keeps its rows; None: it is none.
    """

    def __init__(self, graph: LogicalGraph, materialization: Mapping[str, Materialization | None]) -> None:
        self._graph = graph
        self._keeping = materialization
        self.materialized: set[str] = set()
        self.sending_old_values: set[str] = set()

    def declare(self, node: Node) -> None:
        """A table that always has a store, or whose store the user named, is kept from the start."""
        materialization = self._keeping[node.name]
        if materialization is Materialization.ALWAYS or (
            materialization is not None and materialized_of(node).name is not None
        ):
            self.materialized.add(node.name)

    def is_kept(self, table: Node) -> bool:
        """Whether a table has a store of its own by now."""
        return table.name in self.materialized

    def look_up(self, table: Node) -> None:
        """Rows will be looked up by key: the table, or what it is a view of, needs a store."""
        if self.is_kept(table):
            return
        if self._keeping[table.name] in _VIEWS:
            for parent in self._graph.parents(table):
                self.look_up(parent)
        else:
            self.materialized.add(table.name)

    def send_old_values(self, table: Node, *, force: bool) -> bool:
        """Old values are wanted: whether they will come. Without `force` no store is made for it."""
        if self._keeping[table.name] is Materialization.JOINED:
            for parent in self._graph.parents(table):
                self.send_old_values(parent, force=True)
        elif not self.is_kept(table) and not self._old_values_without_store(table, force):
            return False
        self.sending_old_values.add(table.name)
        return True

    def _old_values_without_store(self, table: Node, force: bool) -> bool:
        if self._keeping[table.name] is Materialization.IF_NAMED:
            return self.send_old_values(self._graph.parents(table)[0], force=force)
        if force:
            self.materialized.add(table.name)
        return force


TableRule = Callable[[Any, TableDemands, tuple[Node, ...]], None]
"""`rule(node, tables, parents)`: what a node needs of the tables among its parents."""


def versioned_tables(
    graph: LogicalGraph, materialization: Mapping[str, Materialization | None], materialized: frozenset[str]
) -> frozenset[str]:
    """A table has a history by its own store; a view without a store has that of its parent, a join has none."""
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
    """How the user wants a table to be kept."""
    materialized: Materialized = table.materialized  # type: ignore[attr-defined]  # every table node has it
    return materialized

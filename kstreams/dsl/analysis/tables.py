"""Which tables are kept in a store although unnamed, and which must send old values along with new ones.

Both follow from what reads a table: a join looks rows up, a regrouping or `suppress` needs old values. Operators ask in
the order of their declaration, as in Kafka Streams, since a filter asks only for what its parent can give at that time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kstreams.dsl.graph import (
    GlobalTableJoin,
    GlobalTableSource,
    LeftGlobalTableJoin,
    LeftStreamTableJoin,
    LogicalGraph,
    Node,
    StreamAggregate,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableFilter,
    TableGroupBy,
    TableMapValues,
    TableSource,
    ToTable,
    WindowedAggregate,
)
from kstreams.dsl.graph.cogroups import Cogroup, WindowedCogroup
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, TableJoin
from kstreams.dsl.graph.tables import TableTransformValues
from kstreams.dsl.rule_book import RuleBook


class Keeping(Enum):
    """How a table node keeps its rows."""

    ALWAYS = "always"
    ON_DEMAND = "on demand"  # when named, looked up or asked for old values
    IF_NAMED = "if named"  # else it is a view of its parent
    JOINED = "joined"  # if named, else a view of both its parents, on whose old values its own depend in either case


KEEPING: dict[type[Node], Keeping] = {
    TableSource: Keeping.ON_DEMAND,
    ToTable: Keeping.ON_DEMAND,
    GlobalTableSource: Keeping.ALWAYS,
    StreamAggregate: Keeping.ALWAYS,
    WindowedAggregate: Keeping.ALWAYS,
    Cogroup: Keeping.ALWAYS,
    WindowedCogroup: Keeping.ALWAYS,
    TableAggregate: Keeping.ALWAYS,
    TableFilter: Keeping.IF_NAMED,
    TableMapValues: Keeping.IF_NAMED,
    TableTransformValues: Keeping.IF_NAMED,
    Suppress: Keeping.IF_NAMED,
    TableJoin: Keeping.JOINED,
    ForeignKeyJoin: Keeping.ON_DEMAND,
}
"""Every node type that is a table."""

_VIEWS = (Keeping.IF_NAMED, Keeping.JOINED)


@dataclass(frozen=True)
class TableFacts:
    """Names of the tables that have a store, of those that send old values, and of those whose rows have a history."""

    materialized: frozenset[str]
    sending_old_values: frozenset[str]
    versioned: frozenset[str]


class TableDemands:
    """What has been asked of the tables so far."""

    def __init__(self, graph: LogicalGraph) -> None:
        self._graph = graph
        self.materialized: set[str] = set()
        self.sending_old_values: set[str] = set()

    def is_kept(self, table: Node) -> bool:
        """Whether a table has a store of its own by now."""
        return table.name in self.materialized

    def look_up(self, table: Node) -> None:
        """Rows will be looked up by key: the table, or what it is a view of, needs a store."""
        if self.is_kept(table):
            return
        if KEEPING[type(table)] in _VIEWS:
            for parent in self._graph.parents(table):
                self.look_up(parent)
        else:
            self.materialized.add(table.name)

    def send_old_values(self, table: Node, *, force: bool) -> bool:
        """Old values are wanted: whether they will come. Without `force` no store is made for it."""
        if KEEPING[type(table)] is Keeping.JOINED:
            for parent in self._graph.parents(table):
                self.send_old_values(parent, force=True)
        elif not self.is_kept(table) and not self._old_values_without_store(table, force):
            return False
        self.sending_old_values.add(table.name)
        return True

    def _old_values_without_store(self, table: Node, force: bool) -> bool:
        if KEEPING[type(table)] is Keeping.IF_NAMED:
            return self.send_old_values(self._graph.parents(table)[0], force=force)
        if force:
            self.materialized.add(table.name)
        return force


demands: RuleBook[Callable[[Any, TableDemands, tuple[Node, ...]], None]] = RuleBook("the analysis of tables")
"""What a node asks of its parents: `rule(node, tables, parents)`. Node types without a rule ask nothing."""


@demands.rule(TableFilter)
def filter_demands(node: TableFilter, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """Old values, if they can be had without a store, spare a filter from forwarding needless tombstones."""
    if tables.send_old_values(parents[0], force=False):
        tables.sending_old_values.add(node.name)


@demands.rule(StreamTableJoin, LeftStreamTableJoin, GlobalTableJoin, LeftGlobalTableJoin)
def lookup_demands(node: Node, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """A join looks into its table."""
    tables.look_up(parents[1])


@demands.rule(TableJoin)
def table_join_demands(node: TableJoin, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """Each side looks into the other table; on an outer side, only a row that was there leaves a deletion behind."""
    for parent, outer in zip(parents, (node.left_outer, node.right_outer), strict=True):
        if outer:
            tables.send_old_values(parent, force=True)
    for parent in parents:
        tables.look_up(parent)


@demands.rule(ForeignKeyJoin)
def foreign_key_join_demands(node: ForeignKeyJoin, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """The old row tells what was subscribed to; both tables are looked into."""
    for parent in parents:
        tables.send_old_values(parent, force=True)
        tables.look_up(parent)


@demands.rule(Suppress)
def suppress_demands(node: Suppress, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """What was there before an update waits with it."""
    tables.send_old_values(parents[0], force=True)


@demands.rule(TableGroupBy)
def group_demands(node: TableGroupBy, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """The old row must be taken from its group."""
    tables.send_old_values(parents[0], force=True)


def table_facts(graph: LogicalGraph) -> TableFacts:
    """What the tables of a graph must keep and send."""
    tables = TableDemands(graph)
    for node in graph:
        if _kept_from_the_start(node):
            tables.materialized.add(node.name)
        if demands.supports(type(node)):
            demands.rule_for(node)(node, tables, graph.parents(node))
    kept = frozenset(tables.materialized)
    return TableFacts(kept, frozenset(tables.sending_old_values), _versioned(graph, kept))


def _versioned(graph: LogicalGraph, kept: frozenset[str]) -> frozenset[str]:
    """A table has a history by its own store; a view without a store has that of its parent, a join has none."""
    found: set[str] = set()
    for node in graph:
        if node.name in kept:
            materialized = node.materialized  # type: ignore[attr-defined]  # every table node has it
            has_history = materialized.history_retention_ms is not None
        else:
            has_history = KEEPING.get(type(node)) is Keeping.IF_NAMED and node.parents[0] in found
        if has_history:
            found.add(node.name)
    return frozenset(found)


def _kept_from_the_start(node: Node) -> bool:
    keeping = KEEPING.get(type(node))
    if keeping is None or keeping is Keeping.ALWAYS:
        return keeping is not None
    materialized = node.materialized  # type: ignore[attr-defined]  # every table node has it
    return materialized.name is not None

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
from kstreams.dsl.rule_book import RuleBook


class Keeping(Enum):
    """How a table node keeps its rows."""

    ALWAYS = "always"
    ON_DEMAND = "on demand"  # when named, looked up or asked for old values
    IF_NAMED = "if named"  # else it is a view of its parent


KEEPING: dict[type[Node], Keeping] = {
    TableSource: Keeping.ON_DEMAND,
    ToTable: Keeping.ON_DEMAND,
    GlobalTableSource: Keeping.ALWAYS,
    StreamAggregate: Keeping.ALWAYS,
    WindowedAggregate: Keeping.ALWAYS,
    TableAggregate: Keeping.ALWAYS,
    TableFilter: Keeping.IF_NAMED,
    TableMapValues: Keeping.IF_NAMED,
    Suppress: Keeping.IF_NAMED,
}
"""Every node type that is a table."""


@dataclass(frozen=True)
class TableFacts:
    """Names of the tables that have a store, and of those that send old values."""

    materialized: frozenset[str]
    sending_old_values: frozenset[str]


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
        if KEEPING[type(table)] is Keeping.IF_NAMED:
            self.look_up(self._graph.parents(table)[0])
        else:
            self.materialized.add(table.name)

    def send_old_values(self, table: Node, *, force: bool) -> bool:
        """Old values are wanted: whether they will come. Without `force` no store is made for it."""
        if not self.is_kept(table) and not self._old_values_without_store(table, force):
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
    return TableFacts(frozenset(tables.materialized), frozenset(tables.sending_old_values))


def _kept_from_the_start(node: Node) -> bool:
    keeping = KEEPING.get(type(node))
    if keeping is None or keeping is Keeping.ALWAYS:
        return keeping is not None
    materialized = node.materialized  # type: ignore[attr-defined]  # every table node has it
    return materialized.name is not None

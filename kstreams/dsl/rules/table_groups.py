"""Rules of tables grouped by another key: their changes pass an internal topic before they are aggregated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.tables import Materialization, TableDemands
from kstreams.dsl.analysis.types import unchanged
from kstreams.dsl.analysis.types_of_tables import regrouped, table_aggregated
from kstreams.dsl.graph import Node, TableAggregate, TableCount, TableFold, TableGroupBy, TableReduce, TableRepartition
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.aggregates import gave_nothing
from kstreams.processor.operators.stateless import pair_of
from kstreams.processor.operators.tables.rows import MaterializedRows, StoreView
from kstreams.processor.operators.tables.table_aggregate import GroupRowsOperator, TableAggregateOperator
from kstreams.processor.topology.nodes import repartition_topic
from kstreams.serdes import ChangeSerde, serde_of
from kstreams.state import store_kinds

Functions = tuple[Callable[[], Any], Callable[[Any, Any, Any], Any], Callable[[Any, Any, Any], Any]]


def table_group_by(node: TableGroupBy, build: Lowering) -> str:
    kind = build.types[node.name].key.kind
    key = None if kind is None else serde_of(kind)
    versioned = build.is_versioned(build.parent(node))
    return build.processor(node, GroupRowsOperator(_grouping(node, build), versioned, key))


def _grouping(node: TableGroupBy, build: Lowering) -> Callable[[Any, Any], tuple[Any, Any]]:
    if not isinstance(node.function, tuple):
        group = node.function
        return lambda row_key, row: pair_of(group(row_key, row))
    key, value = build.pair(node, node.function, ("key", "value"))
    return lambda row_key, row: (key(row_key, row), value(row_key, row))


def table_repartition(node: TableRepartition, build: Lowering) -> str:
    serdes = build.serdes(node, "to repartition its rows")
    serdes["value"] = ChangeSerde(serdes["value"])
    build.topology.add_repartition_topic(repartition_topic(node.topic))
    build.sink(node, node.sink, node.topic, **serdes)
    return build.source(node, node.name, (node.topic,), **serdes)


def table_aggregate(node: TableAggregate, build: Lowering) -> str:
    serdes = build.serdes(node, "to keep its aggregates")
    store = build.store(node.store, store_kinds.TIMESTAMPED_KEY_VALUE, node.materialized, **serdes)
    build.set_view(node, StoreView(store))
    table_rows = MaterializedRows(store, node.materialized.caching, build.sends_old(node))
    functions = _FUNCTIONS[type(node.aggregation)](node.aggregation)
    return build.processor(node, TableAggregateOperator(*functions, table_rows, gave_nothing(node)), stores=(store,))


def _count(count: TableCount) -> Functions:
    return int, lambda key, row, rows: rows + 1, lambda key, row, rows: rows - 1


def _fold(fold: TableFold) -> Functions:
    return fold.initializer, fold.adder, fold.subtractor


class _NoRow:
    """Stands for the aggregate of a `reduce` that has no row. A class is itself again in another process."""


def _no_row() -> object:
    return _NoRow


def _reduce(reduce: TableReduce) -> Functions:
    adder = reduce.adder
    subtractor = reduce.subtractor

    def add(key: object, row: object, aggregate: object) -> Any:
        return row if aggregate is _NoRow else adder(aggregate, row)

    return _no_row, add, lambda key, row, aggregate: subtractor(aggregate, row)


_FUNCTIONS: dict[type, Callable[[Any], Functions]] = {TableCount: _count, TableFold: _fold, TableReduce: _reduce}


def old_values(node: TableGroupBy, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """The old row must be taken from its group."""
    tables.send_old_values(parents[0], force=True)


OPERATORS = (
    OperatorDescriptor(node=TableGroupBy, types=regrouped, topology=table_group_by, tables=old_values),
    OperatorDescriptor(node=TableRepartition, types=unchanged, topology=table_repartition),
    OperatorDescriptor(
        node=TableAggregate, types=table_aggregated, topology=table_aggregate, materialization=Materialization.ALWAYS
    ),
)

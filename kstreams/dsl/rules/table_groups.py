"""Rules of tables grouped by another key: their changes go through an internal topic and are then aggregated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.tables import Materialization, TableDemands
from kstreams.dsl.analysis.types import TypeOf, Types, pair_returned_by, unchanged
from kstreams.dsl.graph import Node, TableAggregate, TableCount, TableFold, TableGroupBy, TableReduce, TableRepartition
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.return_annotations import return_type
from kstreams.dsl.rules.aggregates import none_warning
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.stateless import pair_result
from kstreams.processor.operators.tables.rows import StoreView
from kstreams.processor.operators.tables.table_aggregate import GroupRowsOperator, TableAggregateOperator
from kstreams.processor.topology.nodes import repartition_topic
from kstreams.serdes import ChangeSerde, serde_of
from kstreams.state import store_kinds

Functions = tuple[Callable[[], Any], Callable[[Any, Any, Any], Any], Callable[[Any, Any, Any], Any]]


def group_by_types(node: TableGroupBy, parents: tuple[Types, ...]) -> Types:
    key, value = pair_returned_by(node, node.function, parents[0])
    grouped = node.grouped
    return Types(TypeOf(grouped.key or key, node), TypeOf(grouped.value or value, node))


def aggregate_types(node: TableAggregate, parents: tuple[Types, ...]) -> Types:
    (parent,) = parents
    key = parent.key.or_declared(node.key, node)
    if node.value is not None:
        return Types(key, TypeOf(node.value, node))
    if isinstance(node.aggregation, TableReduce):
        return Types(key, parent.value)
    if isinstance(node.aggregation, TableCount):
        return Types(key, TypeOf(int, node))
    fold = node.aggregation
    return Types(key, TypeOf(return_type(fold.adder) or return_type(fold.initializer), node))


def table_group_by(node: TableGroupBy, build: Lowering) -> str:
    kind = build.types[node.name].key.kind
    key = None if kind is None else serde_of(kind)
    versioned = build.is_versioned(build.parent(node))
    return build.processor(node, GroupRowsOperator(_grouping(node, build), versioned, key))


def _grouping(node: TableGroupBy, build: Lowering) -> Callable[[Any, Any], tuple[Any, Any]]:
    if not isinstance(node.function, tuple):
        group = node.function
        return lambda row_key, row: pair_result(group(row_key, row))
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
    return build.processor(node, TableAggregateOperator(*functions, table_rows, none_warning(node)), stores=(store,))


def _count(count: TableCount) -> Functions:
    return int, lambda key, row, rows: rows + 1, lambda key, row, rows: rows - 1


def _fold(fold: TableFold) -> Functions:
    return fold.initializer, fold.adder, fold.subtractor


class _NoRow:
    """Marks the aggregate of a `reduce` over no rows; a class, since pickling would copy an object."""


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
    """Demand old values: an old row is subtracted from its group."""
    tables.send_old_values(parents[0], force=True)


OPERATORS = (
    OperatorDescriptor(node=TableGroupBy, types=group_by_types, topology=table_group_by, tables=old_values),
    OperatorDescriptor(node=TableRepartition, types=unchanged, topology=table_repartition),
    OperatorDescriptor(
        node=TableAggregate, types=aggregate_types, topology=table_aggregate, materialization=Materialization.ALWAYS
    ),
)

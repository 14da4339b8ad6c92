"""Rules of tables grouped by another key: their changes go through an internal topic and are then aggregated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kstreams.dsl.analysis.tables import Materialization, TableDemands
from kstreams.dsl.analysis.types import TypeOf, Types, naming, pair_returned_by, unchanged
from kstreams.dsl.graph import (
    Node,
    TableAggregate,
    TableCount,
    TableExpressions,
    TableFold,
    TableGroupBy,
    TableRanking,
    TableReduce,
    TableRepartition,
)
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.return_annotations import return_type
from kstreams.dsl.rules.aggregates import none_warning
from kstreams.expressions import RowAggregation, row_aggregation
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.aggregation.rows import ResultView
from kstreams.processor.operators.stateless import pair_result
from kstreams.processor.operators.tables.expressions import ExpressionsOfRows
from kstreams.processor.operators.tables.ranking import RankingAggregator
from kstreams.processor.operators.tables.rows import StoreView
from kstreams.processor.operators.tables.table_aggregate import (
    FunctionsOfRows,
    GroupRowsOperator,
    TableAggregateOperator,
    TableAggregator,
)
from kstreams.processor.topology.nodes import repartition_topic
from kstreams.serdes import BytesSerde, ChangeSerde, MsgpackSerde, Serde, serde_of
from kstreams.serdes.member_rows import MemberRowSerde
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
    return Types(key, _TYPES[type(node.aggregation)](node.aggregation, node, parent))


def _type_of_fold(fold: TableFold, node: TableAggregate, parent: Types) -> TypeOf:
    return TypeOf(return_type(fold.adder) or return_type(fold.initializer), node)


def _type_of_ranking(ranking: TableRanking, node: TableAggregate, parent: Types) -> TypeOf:
    return TypeOf(list[ranking.row], node)  # type: ignore[name-defined]


def _type_of_expressions(expressions: TableExpressions, node: TableAggregate, parent: Types) -> TypeOf:
    return TypeOf(_row_aggregation(expressions, node, parent).value_type, node)


def _row_aggregation(expressions: TableExpressions, node: TableAggregate, parent: Types) -> RowAggregation:
    result = node.value.type if isinstance(node.value, Serde) else node.value
    with naming(node):
        return row_aggregation(dict(expressions.fields), parent.key.python, parent.value.python, result)


_TYPES: dict[type, Callable[[Any, TableAggregate, Types], TypeOf]] = {
    TableCount: lambda count, node, parent: TypeOf(int, node),
    TableReduce: lambda reduce, node, parent: parent.value,
    TableFold: _type_of_fold,
    TableRanking: _type_of_ranking,
    TableExpressions: _type_of_expressions,
}


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


class LoweredRows(NamedTuple):
    """An aggregation of rows, the serde of its state, and the stores beside it."""

    aggregator: TableAggregator
    state: Serde
    stores: tuple[str, ...] = ()


def table_aggregate(node: TableAggregate, build: Lowering) -> str:
    key = build.key_serde(node, "to keep its aggregates")
    lowered = _LOWERED[type(node.aggregation)](node.aggregation, node, build)
    result = lowered.aggregator.result
    settings = {
        "key": key,
        "value": lowered.state,
        "result": None if result is None else result.of_queries(node.store),
        "result_type": build.types[node.name].value.python,
    }
    store = build.store(node.store, store_kinds.TIMESTAMPED_KEY_VALUE, node.materialized, **settings)
    view = StoreView(store)
    build.set_view(node, view if result is None else ResultView(view, result, lowered.stores))
    table_rows = MaterializedRows(store, node.materialized.caching, build.sends_old(node))
    operator = TableAggregateOperator(lowered.aggregator, table_rows, none_warning(node))
    return build.processor(node, operator, stores=(store, *lowered.stores))


def _functions(aggregation: Any, node: TableAggregate, build: Lowering) -> LoweredRows:
    state = build.value_serde(node, "to keep its aggregates")
    return LoweredRows(FunctionsOfRows(*_FUNCTIONS[type(aggregation)](aggregation)), state)


def _ranking(ranking: TableRanking, node: TableAggregate, build: Lowering) -> LoweredRows:
    store = _member_store(node, build, (ranking.row,))
    aggregator = RankingAggregator(ranking.n, ranking.by, serde_of(ranking.row), store, node.store)
    state = tuple[int, list[ranking.row], bytes]  # type: ignore[name-defined]
    return LoweredRows(aggregator, MsgpackSerde(state), (store,))


def _expressions(expressions: TableExpressions, node: TableAggregate, build: Lowering) -> LoweredRows:
    aggregation = _row_aggregation(expressions, node, build.input_types(node))
    types = tuple(aggregation.member_types.values())
    stores = (_member_store(node, build, types),) if types else ()
    aggregator = ExpressionsOfRows(aggregation, node.store, "".join(stores))
    return LoweredRows(aggregator, MsgpackSerde(aggregation.state_type), stores)


def _member_store(node: TableAggregate, build: Lowering, types: tuple[Any, ...]) -> str:
    """Add the store of the members of groups, which have these types, and return its name."""
    settings: dict[str, Any] = {
        "key": MemberRowSerde(build.key_serde(node, "to keep its rows"), types),
        "value": BytesSerde(),
        "queryable": False,
    }
    return build.store(f"{node.store}-members", store_kinds.KEY_VALUE, node.materialized, **settings)


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
_LOWERED: dict[type, Callable[[Any, TableAggregate, Lowering], LoweredRows]] = {
    **dict.fromkeys(_FUNCTIONS, _functions),
    TableRanking: _ranking,
    TableExpressions: _expressions,
}


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

"""Rules of the conversions between streams and tables, and of the operators of one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.tables import Materialization, TableDemands
from kstreams.dsl.analysis.types import TypeOf, Types, declared_types, returned_by, unchanged
from kstreams.dsl.graph import Function, Node, TableFilter, TableMapValues, TableSource, ToStream, ToTable
from kstreams.dsl.graph.table_joins import ForeignKeyJoin
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.expressions import Expr
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.tables import rows as op
from kstreams.state import store_kinds


def map_values_types(node: TableMapValues, parents: tuple[Types, ...]) -> Types:
    kind = node.value or returned_by(node, node.function, parents[0])
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(kind, node))


def to_table(node: ToTable, build: Lowering) -> str:
    return table_of_records(node, build, build.outputs(node))


def to_stream(node: ToStream, build: Lowering) -> str:
    return build.processor(node, op.ToStreamOperator())


def table_filter(node: TableFilter, build: Lowering) -> str:
    predicate = _of_row(node, node.predicate, build, with_key=True)
    keeps = _refuse(predicate) if node.negate else _accept(predicate)
    return _view(node, build, keeps, skips_empty=True)


def table_map_values(node: TableMapValues, build: Lowering) -> str:
    return _view(node, build, _of_row(node, node.function, build, with_key=node.with_key), skips_empty=False)


def table_of_records(
    node: TableSource | ToTable | ForeignKeyJoin,
    build: Lowering,
    parents: tuple[str, ...],
    source_topic: str | None = None,
) -> str:
    """Add the table that the records of `parents` update; it has a store if the table needs one.

    Parameters
    ----------
    source_topic : str, optional
        The topic from which its store is restored instead of a changelog.
    """
    if not build.has_store(node):
        return build.processor(node, op.UnmaterializedTableSourceOperator(), parents=parents)
    table_rows = materialized_rows(node, node.store, build, source_topic=source_topic)
    return build.processor(node, op.TableSourceOperator(table_rows), parents=parents, stores=(table_rows.store,))


def _view(node: TableFilter | TableMapValues, build: Lowering, mapper: op.Mapper, *, skips_empty: bool) -> str:
    # An update of a versioned table may be of the past: if it has no row, the latest version may still have one.
    skips_empty = skips_empty and not build.is_versioned(build.parent(node))
    if node.materialized.name is None:
        parent = build.view_of_parent(node)
        if parent is not None:
            build.set_view(node, op.MappedView(parent, mapper))
        return build.processor(node, op.ViewOperator(mapper, build.sends_old(node), skips_empty))
    table_rows = materialized_rows(node, node.materialized.name, build)
    return build.processor(
        node, op.MaterializedViewOperator(mapper, table_rows, skips_empty), stores=(table_rows.store,)
    )


def materialized_rows(node: Any, name: str, build: Lowering, **settings: Any) -> MaterializedRows:
    """Add the store of a table, versioned or not, and the view by which other operators look up its rows."""
    settings = {**settings, **build.serdes(node, "to keep its rows")}
    kind = store_kinds.TIMESTAMPED_KEY_VALUE
    versioned = build.is_versioned(node)
    if versioned:
        settings["history_retention_ms"] = node.materialized.history_retention_ms
        kind = store_kinds.VERSIONED
    build.set_view(node, op.StoreView(name))
    build.store(name, kind, node.materialized, **settings)
    return MaterializedRows(name, node.materialized.caching, build.sends_old(node), versioned)


def _of_row(node: Any, function: Function, build: Lowering, *, with_key: bool) -> op.Mapper:
    """Return a function or expression of the user as a function of key, value and timestamp."""
    function_of_row = build.function(node, function, ("key", "value", "timestamp"), build.types[node.name].value)
    if isinstance(function, Expr):
        return function_of_row
    return (
        (lambda key, value, timestamp: function_of_row(key, value))
        if with_key
        else (lambda key, value, timestamp: function_of_row(value))
    )


def _accept(predicate: Callable[..., Any]) -> op.Mapper:
    return lambda key, value, timestamp: value if predicate(key, value, timestamp) else None


def _refuse(predicate: Callable[..., Any]) -> op.Mapper:
    return lambda key, value, timestamp: None if predicate(key, value, timestamp) else value


def old_values_for_filter(node: TableFilter, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """Demand old values if they need no store: with them, a filter forwards no needless tombstones."""
    if tables.send_old_values(parents[0], force=False):
        tables.sending_old_values.add(node.name)


OPERATORS = (
    OperatorDescriptor(
        node=ToTable, types=declared_types, topology=to_table, materialization=Materialization.ON_DEMAND
    ),
    OperatorDescriptor(node=ToStream, types=unchanged, topology=to_stream),
    OperatorDescriptor(
        node=TableFilter,
        types=declared_types,
        topology=table_filter,
        materialization=Materialization.IF_NAMED,
        tables=old_values_for_filter,
    ),
    OperatorDescriptor(
        node=TableMapValues,
        types=map_values_types,
        topology=table_map_values,
        materialization=Materialization.IF_NAMED,
    ),
)

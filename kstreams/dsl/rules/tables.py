"""Rules between streams and tables, and of the views of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.graph import Function, TableFilter, TableMapValues, TableSource, ToStream, ToTable
from kstreams.dsl.lowering import Lowering, topology
from kstreams.expressions import Expr
from kstreams.processor.operators import table as op
from kstreams.state.api import StoreKind


@topology.rule(ToTable)
def to_table(node: ToTable, build: Lowering) -> str:
    return table_of_records(node, build, build.outputs(node))


@topology.rule(ToStream)
def to_stream(node: ToStream, build: Lowering) -> str:
    return build.step(node, op.ToStreamOperator())


@topology.rule(TableFilter)
def table_filter(node: TableFilter, build: Lowering) -> str:
    predicate = _of_row(node, node.predicate, build, with_key=True)
    keeps = _refuse(predicate) if node.negate else _accept(predicate)
    return _view(node, build, keeps, skips_empty=True)


@topology.rule(TableMapValues)
def table_map_values(node: TableMapValues, build: Lowering) -> str:
    return _view(node, build, _of_row(node, node.function, build, with_key=node.with_key), skips_empty=False)


def table_of_records(node: TableSource | ToTable, build: Lowering, parents: tuple[str, ...]) -> str:
    """The table that the records of `parents` make up, kept if anybody looks into it."""
    if not build.is_kept(node):
        return build.step(node, op.UnkeptTableSourceOperator(), parents=parents)
    versioned = node.materialized.history_retention_ms is not None
    kind = StoreKind.VERSIONED if versioned else StoreKind.TIMESTAMPED_KEY_VALUE
    store = _row_store(node, node.store, build, kind)
    operator = op.VersionedTableSourceOperator if versioned else op.TableSourceOperator
    kept = op.KeptRows(store, node.materialized.caching, build.sends_old(node))
    return build.step(node, operator(kept), parents=parents, stores=(store,))


def _view(node: TableFilter | TableMapValues, build: Lowering, mapper: op.Mapper, *, skips_empty: bool) -> str:
    name, sends_old = node.materialized.name, build.sends_old(node)
    if name is None:
        parent = build.view_of_parent(node)
        if parent is not None:
            build.set_view(node, op.MappedView(parent, mapper))
        return build.step(node, op.ViewOperator(mapper, sends_old, skips_empty))
    store = _row_store(node, name, build, StoreKind.TIMESTAMPED_KEY_VALUE)
    kept = op.KeptRows(store, node.materialized.caching, sends_old)
    return build.step(node, op.KeptViewOperator(mapper, kept, skips_empty), stores=(store,))


def _row_store(node: Any, name: str, build: Lowering, kind: StoreKind) -> str:
    settings = build.serdes(node, "to keep its rows")
    if kind is StoreKind.VERSIONED:
        settings["history_retention_ms"] = node.materialized.history_retention_ms
    build.set_view(node, op.StoreView(name))
    return build.store(name, kind, node.materialized, **settings)


def _of_row(node: Any, function: Function, build: Lowering, *, with_key: bool) -> op.Mapper:
    """What the user gave, as a function of key, value and timestamp."""
    live = build.function(node, function, ("key", "value", "timestamp"))
    if isinstance(function, Expr):
        return live
    return (lambda key, value, timestamp: live(key, value)) if with_key else (lambda key, value, timestamp: live(value))


def _accept(predicate: Callable[..., Any]) -> op.Mapper:
    return lambda key, value, timestamp: value if predicate(key, value, timestamp) else None


def _refuse(predicate: Callable[..., Any]) -> op.Mapper:
    return lambda key, value, timestamp: None if predicate(key, value, timestamp) else value

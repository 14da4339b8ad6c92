"""Rules of aggregations by window."""

from __future__ import annotations

from typing import Any

from kstreams.dsl.analysis.tables import Materialization
from kstreams.dsl.analysis.types import required_serde
from kstreams.dsl.analysis.types_of_aggregates import grouped_types
from kstreams.dsl.analysis.types_of_windows import TO_KEEP, windowed
from kstreams.dsl.graph import EmitStrategy, WindowedAggregate
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.aggregates import lower, set_view, with_members
from kstreams.dsl.window_kinds import window_kind
from kstreams.expressions.aggregation import WITH_MEMBERS
from kstreams.expressions.operations import Operation
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.windows import Windows


def windowed_aggregate(node: WindowedAggregate, build: Lowering) -> str:
    windows = node.windows
    kind = window_kind(node.windows)
    on_close = node.emit is EmitStrategy.ON_WINDOW_CLOSE
    key = grouped_types(node, build.input_types(node)).key.or_declared(node.key, node)
    key_serde = required_serde(key, node, "key", TO_KEEP)
    settings = kind.store_settings(windows, node.materialized.retention_ms or windows.retention_ms, on_close)
    # The record cache may emit an update after its window has expired, when a list of rows would be gone.
    in_rows = [operation for operation in WITH_MEMBERS if on_close or operation is not Operation.COLLECT]
    lowered = with_members(node, build, lower(node, build), key_serde, kind.members, in_rows, **settings)
    store_settings = {"key": key_serde, **lowered.store_settings(node.store)}
    store = window_store(node.store, windows, node.materialized, build, on_close=on_close, **store_settings)
    set_view(node, build, kind.view(store), lowered)
    table_rows = MaterializedRows(store, build.topology.stores[store].caches, build.sends_old(node))
    operator = kind.operator(lowered.aggregator, table_rows, windows, on_close)
    columnar = kind.columns(lowered.expressions, windows, on_close) if lowered.expressions else None
    return build.processor(node, operator, stores=(store, *lowered.member_stores), columns=columnar)


def window_store(
    name: str, windows: Windows, materialized: Materialized, build: Lowering, *, on_close: bool, **serdes: Any
) -> str:
    """The store of an aggregation by window."""
    kind = window_kind(windows)
    settings = kind.store_settings(windows, materialized.retention_ms or windows.retention_ms, on_close)
    return build.store(name, kind.store, materialized, **settings, **serdes)


OPERATORS = (
    OperatorDescriptor(
        node=WindowedAggregate, types=windowed, topology=windowed_aggregate, materialization=Materialization.ALWAYS
    ),
)

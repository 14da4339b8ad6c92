"""Rules of cogrouped streams: one aggregation per input over one store, and a step in which their updates meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kstreams.dsl.analysis.tables import Materialization
from kstreams.dsl.analysis.types_of_windows import TO_KEEP, cogrouped, cogrouped_key, windowed_cogrouped
from kstreams.dsl.graph.cogroups import Cogroup, WindowedCogroup
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.aggregates import none_warning
from kstreams.dsl.rules.joins import copartition
from kstreams.dsl.rules.windows import window_store
from kstreams.dsl.window_kinds import window_kind
from kstreams.processor.context.table_view import TableView
from kstreams.processor.operators.aggregation.aggregator import Aggregator
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.aggregation.rows import AggregateOperator
from kstreams.processor.operators.stateless import PassOperator
from kstreams.processor.operators.tables.rows import StoreView
from kstreams.processor.topology.operator import Operator
from kstreams.state import store_kinds


def cogroup(node: Cogroup, build: Lowering) -> str:
    store = build.store(node.store, store_kinds.TIMESTAMPED_KEY_VALUE, node.materialized, **_serdes(node, build))
    return _together(node, build, StoreView(store), AggregateOperator)


def windowed_cogroup(node: WindowedCogroup, build: Lowering) -> str:
    windows = node.windows
    kind = window_kind(node.windows)
    store = window_store(node.store, windows, node.materialized, build, on_close=False, **_serdes(node, build))

    def operator(aggregator: Aggregator, table_rows: MaterializedRows) -> Operator:
        return kind.operator(replace(aggregator, merge=node.merger), table_rows, windows, False)

    return _together(node, build, kind.view(store), operator)


def _serdes(node: Cogroup, build: Lowering) -> dict[str, Any]:
    parents = tuple(build.types[parent] for parent in node.parents)
    return {
        "key": build.key_serde(node, TO_KEEP, build.types[node.name]._replace(key=cogrouped_key(node, parents))),
        "value": build.value_serde(node, TO_KEEP),
    }


def _together(
    node: Cogroup, build: Lowering, view: TableView, operator: Callable[[Aggregator, MaterializedRows], Operator]
) -> str:
    build.set_view(node, view)
    copartition(node, build)
    table_rows = MaterializedRows(node.store, node.materialized.caching, build.sends_old(node), shared=True)
    for group, parent in zip(node.inputs, build.outputs(node), strict=True):
        aggregate = operator(
            Aggregator(node.initializer, group.aggregator, warn_of_none=none_warning(node)), table_rows
        )
        build.processor(node, aggregate, name=group.name, parents=(parent,), stores=view.stores)
    return build.processor(node, PassOperator(), parents=tuple(group.name for group in node.inputs))


OPERATORS = (
    OperatorDescriptor(node=Cogroup, types=cogrouped, topology=cogroup, materialization=Materialization.ALWAYS),
    OperatorDescriptor(
        node=WindowedCogroup,
        types=windowed_cogrouped,
        topology=windowed_cogroup,
        materialization=Materialization.ALWAYS,
    ),
)

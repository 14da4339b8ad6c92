"""Rules of aggregations by window: each kind of windows has its store, its view and its operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kstreams import expressions
from kstreams.dsl.aggregation.emit import EmitStrategy
from kstreams.dsl.analysis.tables import Keeping
from kstreams.dsl.analysis.types import required_serde
from kstreams.dsl.analysis.types_of_aggregates import grouped_types
from kstreams.dsl.analysis.types_of_windows import TO_KEEP, windowed
from kstreams.dsl.graph import Count, Expressions, Fold, Reduce, WindowedAggregate
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.aggregates import Lowered, NoValue, lower, set_view
from kstreams.processor import columns
from kstreams.processor.context.table_view import TableView
from kstreams.processor.operators.aggregation.rows import Aggregator
from kstreams.processor.operators.session.rows import Merger, SessionAggregateOperator, SessionStoreView
from kstreams.processor.operators.tables.rows import KeptRows
from kstreams.processor.operators.windowed.rows import WindowedAggregateOperator, WindowStoreView
from kstreams.processor.operators.windowed.sliding import SlidingAggregateOperator
from kstreams.processor.topology.operator import Operator
from kstreams.state import store_kinds
from kstreams.state.api import StoreKind
from kstreams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows


class Windowing(NamedTuple):
    """How one kind of windows is kept and aggregated."""

    store: StoreKind
    view: Callable[[str], TableView]
    operator: Callable[[Aggregator, Merger | None, KeptRows, Any, bool], Operator]
    caches_on_close: bool = False  # Kafka Streams keeps no record cache for the others


def _time(aggregator: Aggregator, _: Merger | None, kept: KeptRows, windows: Any, on_close: bool) -> Operator:
    return WindowedAggregateOperator(aggregator, kept, windows, on_close)


def _sliding(aggregator: Aggregator, _: Merger | None, kept: KeptRows, windows: Any, on_close: bool) -> Operator:
    return SlidingAggregateOperator(aggregator, kept, windows, on_close)


def _session(
    aggregator: Aggregator, merger: Merger | None, kept: KeptRows, windows: SessionWindows, on_close: bool
) -> Operator:
    assert merger is not None, "the method requires it"
    return SessionAggregateOperator(aggregator, merger, kept, windows, on_close)


WINDOWING: dict[type, Windowing] = {
    TimeWindows: Windowing(store_kinds.TIMESTAMPED_WINDOW, WindowStoreView, _time, caches_on_close=True),
    UnlimitedWindows: Windowing(store_kinds.TIMESTAMPED_WINDOW, WindowStoreView, _time, caches_on_close=True),
    SlidingWindows: Windowing(store_kinds.TIMESTAMPED_WINDOW, WindowStoreView, _sliding),
    SessionWindows: Windowing(store_kinds.SESSION, SessionStoreView, _session),
}


def windowed_aggregate(node: WindowedAggregate, build: Lowering) -> str:
    lowered, windows, windowing = lower(node, build), node.windows, WINDOWING[type(node.windows)]
    on_close = node.emit is EmitStrategy.ON_WINDOW_CLOSE
    key = grouped_types(node, build.input_types(node)).key.or_declared(node.key, node)
    serdes: dict[str, Any] = {"key": required_serde(key, node, "key", TO_KEEP), "value": lowered.state}
    store = window_store(node.store, windows, node.materialized, build, on_close=on_close, **serdes)
    set_view(node, build, windowing.view(store), lowered)
    caching = node.materialized.caching and (windowing.caches_on_close or not on_close)
    kept = KeptRows(store, caching, build.sends_old(node))
    operator = windowing.operator(lowered.aggregator, _merger(node, lowered), kept, windows, on_close)
    columnar = None
    if lowered.expressions and isinstance(windows, TimeWindows | SessionWindows):
        columnar = columns.AggregateForm(lowered.expressions, windows, on_close)
    return build.processor(node, operator, stores=(store,), columns=columnar)


def window_store(
    name: str, windows: Windows, materialized: Materialized, build: Lowering, *, on_close: bool, **serdes: Any
) -> str:
    """The store of an aggregation by window.

    For emission on close, Kafka Streams' window store still shows what is just expiring: it keeps a millisecond more.
    """
    windowing = WINDOWING[type(windows)]
    retention_ms = materialized.retention_ms or windows.retention_ms
    if isinstance(windows, SessionWindows):
        times: dict[str, Any] = {"retention_ms": retention_ms}
    else:
        times = {"retention_ms": retention_ms + on_close, "window_size_ms": windows.size_ms}
        times["sparse"] = isinstance(windows, SlidingWindows)
    time_ordered = on_close and not windowing.caches_on_close
    return build.store(name, windowing.store, materialized, time_ordered=time_ordered, **times, **serdes)


def _merger(node: WindowedAggregate, lowered: Lowered) -> Merger | None:
    """How the aggregates of two sessions become one."""
    if not isinstance(node.windows, SessionWindows):
        return None
    return _MERGERS[type(node.aggregation)](node, lowered)


def _sum(key: Any, count: int, other: int) -> int:
    return count + other


def _merged_values(node: WindowedAggregate, lowered: Lowered) -> Merger:
    assert isinstance(node.aggregation, Reduce)
    reducer = node.aggregation.reducer

    def merge(key: Any, aggregate: Any, other: Any) -> Any:
        if aggregate is NoValue:
            return other
        merged = reducer(aggregate, other)
        return NoValue if merged is None else merged

    return merge


def _merged_states(node: WindowedAggregate, lowered: Lowered) -> Merger:
    assert lowered.expressions is not None
    merge = expressions.merging(lowered.expressions)
    return lambda key, state, other: merge(state, other)


_MERGERS: dict[type, Callable[[Any, Lowered], Merger]] = {
    Count: lambda node, lowered: _sum,
    Reduce: _merged_values,
    Fold: lambda node, lowered: node.aggregation.merger,
    Expressions: _merged_states,
}


OPERATORS = (
    OperatorDescriptor(node=WindowedAggregate, types=windowed, topology=windowed_aggregate, keeping=Keeping.ALWAYS),
)

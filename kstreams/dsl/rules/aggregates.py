"""Rules of aggregations: what is aggregated becomes an `Aggregator`, where it is kept is said by the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from kstreams import expressions
from kstreams.dsl.analysis.types import expression_aggregation, grouped_types, required_serde
from kstreams.dsl.emit import EmitStrategy
from kstreams.dsl.graph import Count, Expressions, Fold, Reduce, StreamAggregate, WindowedAggregate
from kstreams.dsl.lowering import Lowering, topology
from kstreams.processor import columns
from kstreams.processor.operators.aggregate import AggregateOperator, Aggregator, ResultView
from kstreams.processor.operators.table import KeptRows, StoreView
from kstreams.processor.operators.windowed import WindowedAggregateOperator, WindowStoreView
from kstreams.serdes import MsgpackSerde, Serde
from kstreams.state.api import StoreKind
from kstreams.windows import TimeWindows

Aggregate: TypeAlias = StreamAggregate | WindowedAggregate


class Lowered(NamedTuple):
    """An aggregation ready to run: its functions, the serde of its state, and its expressions if it is made of them."""

    aggregator: Aggregator
    state: Serde[Any]
    expressions: expressions.Aggregation | None


@topology.rule(StreamAggregate)
def stream_aggregate(node: StreamAggregate, build: Lowering) -> str:
    lowered = _lower(node, build)
    key = build.key_serde(node, "to keep its aggregates")
    kind = StoreKind.TIMESTAMPED_KEY_VALUE
    store = build.store(node.store, kind, node.materialized, key=key, value=lowered.state)
    _set_view(node, build, StoreView(store), lowered)
    kept = KeptRows(store, node.materialized.caching, build.sends_old(node))
    columnar = columns.Fold(lowered.expressions) if lowered.expressions else None
    return build.step(node, AggregateOperator(lowered.aggregator, kept), stores=(store,), columns=columnar)


@topology.rule(WindowedAggregate)
def windowed_aggregate(node: WindowedAggregate, build: Lowering) -> str:
    lowered, windows = _lower(node, build), node.windows
    store = _window_store(node, build, lowered)
    _set_view(node, build, WindowStoreView(store), lowered)
    kept = KeptRows(store, node.materialized.caching, build.sends_old(node))
    on_close = node.emit is EmitStrategy.ON_WINDOW_CLOSE
    columnar = None
    if lowered.expressions and isinstance(windows, TimeWindows):
        columnar = columns.Fold(lowered.expressions, windows, on_close)
    operator = WindowedAggregateOperator(lowered.aggregator, kept, windows, on_close)
    return build.step(node, operator, stores=(store,), columns=columnar)


def _window_store(node: WindowedAggregate, build: Lowering, lowered: Lowered) -> str:
    key = grouped_types(node, build.input_types(node)).key.or_declared(node.key, node)
    return build.store(
        node.store,
        StoreKind.TIMESTAMPED_WINDOW,
        node.materialized,
        key=required_serde(key, node, "key", "to keep its aggregates"),
        value=lowered.state,
        retention_ms=_retention_ms(node),
        window_size_ms=node.windows.size_ms,
    )


def _retention_ms(node: WindowedAggregate) -> int:
    """One millisecond more for emission on close: Kafka Streams' store for it still shows what is just expiring."""
    asked_ms = node.materialized.retention_ms or node.windows.retention_ms
    return asked_ms + (node.emit is EmitStrategy.ON_WINDOW_CLOSE)


def _set_view(node: Aggregate, build: Lowering, view: Any, lowered: Lowered) -> None:
    result = lowered.aggregator.result
    build.set_view(node, view if result is None else ResultView(view, result))


def _lower(node: Aggregate, build: Lowering) -> Lowered:
    return _LOWERED[type(node.aggregation)](node, build)


def _count(node: Aggregate, build: Lowering) -> Lowered:
    serde = build.value_serde(node, "to keep its counts")
    return Lowered(Aggregator(int, lambda key, value, count: count + 1), serde, expressions.counting())


def _fold(node: Aggregate, build: Lowering) -> Lowered:
    fold = node.aggregation
    assert isinstance(fold, Fold)
    serde = build.value_serde(node, "to keep its aggregates")
    return Lowered(Aggregator(fold.initializer, fold.aggregator), serde, None)


class _NoValue:
    """Stands for the aggregate of a `reduce` that has seen no value. A class is itself again in another process."""


def _no_value() -> object:
    return _NoValue


def _reduce(node: Aggregate, build: Lowering) -> Lowered:
    reduce = node.aggregation
    assert isinstance(reduce, Reduce)
    reducer, serde = reduce.reducer, build.value_serde(node, "to keep its aggregates")

    def step(key: Any, value: Any, aggregate: Any) -> Any:
        return value if aggregate is _NoValue else reducer(aggregate, value)

    return Lowered(Aggregator(_no_value, step, has_initial=False), serde, None)


def _expressions(node: Aggregate, build: Lowering) -> Lowered:
    aggregation = expression_aggregation(node, build.input_types(node))
    aggregator = Aggregator(aggregation.initial, _in_order(aggregation), timed=True, result=aggregation.result)
    return Lowered(aggregator, MsgpackSerde(aggregation.state_type), aggregation)


def _in_order(aggregation: expressions.Aggregation) -> Callable[[Any, Any, Any, int], Any]:
    add = aggregation.add
    return lambda key, value, state, timestamp: add(state, key, value, timestamp)


_LOWERED: dict[type, Callable[[Aggregate, Lowering], Lowered]] = {
    Count: _count,
    Reduce: _reduce,
    Fold: _fold,
    Expressions: _expressions,
}

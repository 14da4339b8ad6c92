"""Rule of aggregations by key, and the `Aggregator` of each kind of aggregation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from kstreams import expressions
from kstreams.dsl.analysis.tables import Materialization
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.analysis.types_of_aggregates import aggregated, expression_aggregation
from kstreams.dsl.graph import Count, Expressions, Fold, Node, Reduce, StreamAggregate, WindowedAggregate
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.processor import columns
from kstreams.processor.context.table_view import TableView
from kstreams.processor.operators.aggregation.aggregator import Aggregator
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.aggregation.rows import AggregateOperator, ResultView
from kstreams.processor.operators.first_warning import FirstWarning
from kstreams.processor.operators.tables.rows import StoreView
from kstreams.serdes import MsgpackSerde, Serde
from kstreams.state import store_kinds

Aggregate: TypeAlias = StreamAggregate | WindowedAggregate


class Lowered(NamedTuple):
    """The functions of an aggregation, the serde of its state, and its expressions if it has any."""

    aggregator: Aggregator
    state: Serde
    expressions: expressions.Aggregation | None

    def store_settings(self) -> dict[str, Any]:
        """Return the settings of the store: the serde of the state, and how queries read results."""
        kind = None if self.expressions is None else self.expressions.value_type
        return {"value": self.state, "result": self.aggregator.result, "result_type": kind}


def stream_aggregate(node: StreamAggregate, build: Lowering) -> str:
    lowered = lower(node, build)
    key = build.key_serde(node, "to keep its aggregates")
    kind = store_kinds.TIMESTAMPED_KEY_VALUE
    store = build.store(node.store, kind, node.materialized, key=key, **lowered.store_settings())
    set_view(node, build, StoreView(store), lowered)
    table_rows = MaterializedRows(store, node.materialized.caching, build.sends_old(node))
    columnar = columns.AggregateForm(lowered.expressions) if lowered.expressions else None
    return build.processor(node, AggregateOperator(lowered.aggregator, table_rows), stores=(store,), columns=columnar)


def set_view(node: Aggregate, build: Lowering, view: TableView, lowered: Lowered) -> None:
    """Set the view of the table: its rows are the results of the aggregates."""
    result = lowered.aggregator.result
    build.set_view(node, view if result is None else ResultView(view, result))


class KnownTypes(Protocol):
    """The types and serdes that an aggregation reads of the lowering."""

    def value_serde(self, node: Node, purpose: str) -> Serde: ...

    def input_types(self, node: Node) -> Types: ...


def lower(node: Aggregate, build: KnownTypes) -> Lowered:
    """Return the functions and serde of an aggregation."""
    return _LOWERED[type(node.aggregation)](node, build)


def _count(node: Aggregate, build: KnownTypes) -> Lowered:
    serde = build.value_serde(node, "to keep its counts")
    return Lowered(Aggregator.counting(), serde, expressions.counting())


def _fold(node: Aggregate, build: KnownTypes) -> Lowered:
    fold = node.aggregation
    assert isinstance(fold, Fold)
    serde = build.value_serde(node, "to keep its aggregates")
    aggregator = Aggregator(fold.initializer, fold.aggregator, merge=fold.merger, warn_of_none=none_warning(node))
    return Lowered(aggregator, serde, None)


def none_warning(node: Node) -> FirstWarning:
    """Return the warning about an aggregator that returns None if there is no aggregate to delete."""
    return FirstWarning(
        f"the function of {node} returned None for a key that had no aggregate: none is stored. If it changes the "
        "aggregate in place, let it return the aggregate as well."
    )


def _reduce(node: Aggregate, build: KnownTypes) -> Lowered:
    reduce = node.aggregation
    assert isinstance(reduce, Reduce)
    serde = build.value_serde(node, "to keep its aggregates")
    return Lowered(Aggregator.reducing(reduce.reducer, none_warning(node)), serde, None)


def _expressions(node: Aggregate, build: KnownTypes) -> Lowered:
    aggregation = expression_aggregation(node, build.input_types(node))
    return Lowered(Aggregator.of_expressions(aggregation), MsgpackSerde(aggregation.state_type), aggregation)


_LOWERED: dict[type, Callable[[Aggregate, KnownTypes], Lowered]] = {
    Count: _count,
    Reduce: _reduce,
    Fold: _fold,
    Expressions: _expressions,
}


OPERATORS = (
    OperatorDescriptor(
        node=StreamAggregate, types=aggregated, topology=stream_aggregate, materialization=Materialization.ALWAYS
    ),
)

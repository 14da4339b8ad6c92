"""Rule of aggregations by key, and the `Aggregator` of each kind of aggregation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from kstreams import expressions
from kstreams.dsl.analysis.tables import Materialization
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.analysis.types_of_aggregates import aggregated, expression_aggregation
from kstreams.dsl.graph import Count, Expressions, Fold, Node, Reduce, StreamAggregate, WindowedAggregate
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.expressions.aggregation import WITH_MEMBERS
from kstreams.expressions.operations import Operation
from kstreams.processor import columns
from kstreams.processor.context.table_view import TableView
from kstreams.processor.operators.aggregation.aggregator import Aggregator
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.aggregation.members import MemberRows
from kstreams.processor.operators.aggregation.rows import AggregateOperator, ResultView
from kstreams.processor.operators.first_warning import FirstWarning
from kstreams.processor.operators.tables.rows import StoreView
from kstreams.serdes import BytesSerde, MsgpackSerde, Serde
from kstreams.serdes.member_rows import MemberRowSerde
from kstreams.state import StoreKind, store_kinds

Aggregate: TypeAlias = StreamAggregate | WindowedAggregate


class Lowered(NamedTuple):
    """The functions of an aggregation, the serde of its state, and its expressions if it has any.

    `member_stores` has the name of the store of members, if they are rows.
    """

    aggregator: Aggregator
    state: Serde
    expressions: expressions.Aggregation | None
    member_stores: tuple[str, ...] = ()

    def store_settings(self, store: str) -> dict[str, Any]:
        """Return the settings of the store: the serde of the state, and how queries read results."""
        if self.expressions is None or self.aggregator.result is None:
            return {"value": self.state}
        result = self.aggregator.result.of_queries(store)
        return {"value": self.state, "result": result, "result_type": self.expressions.value_type}


def stream_aggregate(node: StreamAggregate, build: Lowering) -> str:
    key = build.key_serde(node, "to keep its aggregates")
    lowered = with_members(node, build, lower(node, build), key, store_kinds.KEY_VALUE, WITH_MEMBERS)
    kind = store_kinds.TIMESTAMPED_KEY_VALUE
    store = build.store(node.store, kind, node.materialized, key=key, **lowered.store_settings(node.store))
    set_view(node, build, StoreView(store), lowered)
    table_rows = MaterializedRows(store, node.materialized.caching, build.sends_old(node))
    columnar = columns.AggregateForm(lowered.expressions) if lowered.expressions else None
    operator = AggregateOperator(lowered.aggregator, table_rows)
    return build.processor(node, operator, stores=(store, *lowered.member_stores), columns=columnar)


def with_members(
    node: Aggregate,
    build: Lowering,
    lowered: Lowered,
    key: Serde,
    kind: StoreKind | None,
    operations: Sequence[Operation],
    **settings: Any,
) -> Lowered:
    """Return an aggregation whose members are rows, with their store, if it has members and there is a kind of store.

    Parameters
    ----------
    node : Node
    build : Lowering
    lowered : Lowered
        The aggregation with the members in its states.
    key : Serde
        The serde of the groups' keys.
    kind : StoreKind or None
        The kind of the store of members; None if they are part of the states.
    operations : sequence of Operation
        The aggregations whose members may be rows.
    **settings
        Further settings of the store.
    """
    slots = () if lowered.expressions is None else lowered.expressions.slots
    if kind is None or not any(slot.operation in operations for slot in slots):
        return lowered
    aggregation = expression_aggregation(node, build.input_types(node), in_rows=operations)
    types = tuple(aggregation.member_types.values())
    rows = {"key": MemberRowSerde(key, types), "value": BytesSerde(), "queryable": False, **settings}
    store = build.store(f"{node.store}-members", kind, node.materialized, **rows)
    members = MemberRows(store, node.store, windowed=kind.time_in_key is not None, types=aggregation.member_types)
    aggregator = Aggregator.with_members(aggregation, members)
    return Lowered(aggregator, MsgpackSerde(aggregation.state_type), aggregation, (store,))


def set_view(node: Aggregate, build: Lowering, view: TableView, lowered: Lowered) -> None:
    """Set the view of the table: its rows are the results of the aggregates."""
    result = lowered.aggregator.result
    build.set_view(node, view if result is None else ResultView(view, result, lowered.member_stores))


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

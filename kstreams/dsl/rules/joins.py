"""Rules of the joins of a stream with a stream, with itself, with a table or with a global table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.copartition import topics_behind
from kstreams.dsl.analysis.tables import TableDemands
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.analysis.types_of_joins import joined, joined_globally, side_types
from kstreams.dsl.graph import Function
from kstreams.dsl.graph.joins import (
    GlobalTableJoin,
    LeftGlobalTableJoin,
    LeftStreamTableJoin,
    OuterRetainedJoin,
    OuterSelfJoin,
    OuterStreamJoin,
    RetainedJoin,
    SelfJoin,
    StreamJoin,
    StreamTableJoin,
)
from kstreams.dsl.graph.node import Node
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.expressions import key as key_of_record
from kstreams.processor.columns import LookupForm
from kstreams.processor.context.table_view import TableView
from kstreams.processor.operators.joins.lookup_join import GraceLookupJoinOperator, LookupJoinOperator
from kstreams.processor.operators.joins.retained_join import (
    InnerRetainedJoinOperator,
    OuterRetainedJoinOperator,
    RetainedSide,
)
from kstreams.processor.operators.joins.stream_join import (
    InnerStreamJoinOperator,
    JoinWindowOperator,
    OuterStreamJoinOperator,
    SelfJoinOperator,
    StreamJoinSide,
)
from kstreams.processor.operators.stateless import PassOperator
from kstreams.processor.topology.operator import Operator
from kstreams.state import store_kinds

TO_KEEP = "to keep records for the join"


def stream_join(node: StreamJoin, build: Lowering) -> str:
    _side_stores(node, build)
    left, right = _sides(node, build)
    return _join(node, build, InnerStreamJoinOperator(left), InnerStreamJoinOperator(right))


def outer_stream_join(node: OuterStreamJoin, build: Lowering) -> str:
    outer = _outer_store(node, build, *_side_stores(node, build))
    left, right = _sides(node, build)
    grace_ms = node.windows.grace_ms
    this = OuterStreamJoinOperator(left, True, outer, grace_ms)
    other = OuterStreamJoinOperator(right, node.right_outer, outer, grace_ms)
    return _join(node, build, this, other, outer)


def self_join(node: SelfJoin, build: Lowering) -> str:
    windows = node.windows
    left_types, _ = side_types(node, build.input_types(node), build.input_types(node))
    store = _window_store(node, build, node.store, left_types)
    joiner = keyed(node, build)
    left = StreamJoinSide(True, store, joiner, windows.before_ms, windows.after_ms)
    right = StreamJoinSide(False, store, joiner, windows.after_ms, windows.before_ms)
    parents = build.outputs(node)[:1]
    build.processor(node, JoinWindowOperator(store), name=node.windowed, parents=parents, stores=(store,))
    operator = SelfJoinOperator(left, right, windows.retention_ms)
    return build.processor(node, operator, parents=(node.windowed,), stores=(store,))


def retained_join(node: RetainedJoin, build: Lowering) -> str:
    _side_stores(node, build)
    left, right = _retained_sides(node, build)
    return _retained_join(node, build, InnerRetainedJoinOperator(left), InnerRetainedJoinOperator(right))


def outer_retained_join(node: OuterRetainedJoin, build: Lowering) -> str:
    outer = _outer_store(node, build, *_side_stores(node, build))
    left, right = _retained_sides(node, build)
    this = OuterRetainedJoinOperator(left, True, outer)
    other = OuterRetainedJoinOperator(right, node.right_outer, outer)
    return _retained_join(node, build, this, other, outer)


def _retained_sides(node: RetainedJoin, build: Lowering) -> tuple[RetainedSide, RetainedSide]:
    joiner = keyed(node, build)
    names = node.names
    left = RetainedSide(True, names.other_store, joiner, names.this_store, node.retain_ms)
    return left, RetainedSide(False, names.this_store, joiner, names.other_store, node.retain_ms)


def _retained_join(node: RetainedJoin, build: Lowering, this: Operator, other: Operator, *shared_stores: str) -> str:
    """Add the processors of both sides; the node merges their results."""
    names = node.names
    (left, right) = build.outputs(node)
    copartition(node, build)
    stores = (names.this_store, names.other_store, *shared_stores)
    build.processor(node, this, name=names.this_join, parents=(left,), stores=stores)
    build.processor(node, other, name=names.other_join, parents=(right,), stores=stores)
    return build.processor(node, PassOperator(), parents=(names.this_join, names.other_join))


def _outer_store(node: OuterStreamJoin | OuterRetainedJoin, build: Lowering, left: Types, right: Types) -> str:
    """Add the store of records of both sides that have no partner."""
    return build.store(
        node.names.outer_store,
        store_kinds.OUTER_JOIN,
        Materialized(),
        **build.serdes(node, TO_KEEP, left),
        right_value=build.value_serde(node, TO_KEEP, right),
    )


def _side_stores(node: StreamJoin | RetainedJoin, build: Lowering) -> tuple[Types, Types]:
    """Add the window store of each side; return the types of both sides."""
    left, right = side_types(node, build.input_types(node, 0), build.input_types(node, 1))
    _window_store(node, build, node.names.this_store, left)
    _window_store(node, build, node.names.other_store, right)
    return left, right


def _window_store(node: StreamJoin | SelfJoin | RetainedJoin, build: Lowering, name: str, types: Types) -> str:
    """Add a store of the records of one side that records of the other side may still join."""
    if isinstance(node, RetainedJoin):
        span: dict[str, Any] = {"retention_ms": node.retain_ms + 1, "window_size_ms": 0}
    else:
        span = {"retention_ms": node.windows.retention_ms, "window_size_ms": node.windows.size_ms}
    return build.store(
        name,
        store_kinds.WINDOW,
        Materialized(),
        **build.serdes(node, TO_KEEP, types),
        **span,
        retain_duplicates=True,
    )


def _sides(node: StreamJoin, build: Lowering) -> tuple[StreamJoinSide, StreamJoinSide]:
    joiner = keyed(node, build)
    windows = node.windows
    names = node.names
    left = StreamJoinSide(True, names.other_store, joiner, windows.before_ms, windows.after_ms)
    return left, StreamJoinSide(False, names.this_store, joiner, windows.after_ms, windows.before_ms)


def _join(node: StreamJoin, build: Lowering, this: Operator, other: Operator, *shared_stores: str) -> str:
    """Add the processors: each side stores its records and joins them; the node merges the results of both sides."""
    names = node.names
    (left, right) = build.outputs(node)
    copartition(node, build)
    _step(node, build, names.this_windowed, JoinWindowOperator(names.this_store), left, names.this_store)
    _step(node, build, names.other_windowed, JoinWindowOperator(names.other_store), right, names.other_store)
    _step(node, build, names.this_join, this, names.this_windowed, names.other_store, *shared_stores)
    _step(node, build, names.other_join, other, names.other_windowed, names.this_store, *shared_stores)
    return build.processor(node, PassOperator(), parents=(names.this_join, names.other_join))


def _step(node: StreamJoin, build: Lowering, name: str, operator: Operator, parent: str, *stores: str) -> None:
    build.processor(node, operator, name=name, parents=(parent,), stores=stores)


def stream_table_join(node: StreamTableJoin, build: Lowering) -> str:
    copartition(node, build)
    view = build.view_of_table(node, 1)
    versioned = build.is_versioned(build.parent(node, 1))
    join = LookupJoinOperator(view, with_table_key(node, build), node.left_outer, as_of=versioned)
    parents = build.outputs(node)[:1]
    if node.grace_ms is None:
        columns = None if versioned else _look_up(node, key_of_record, build)
        return build.processor(node, join, parents=parents, stores=view.stores, columns=columns)
    _check_grace(node, build, view, node.grace_ms, versioned=versioned)
    buffer = f"{node.name}-Buffer"
    left = side_types(node, build.input_types(node), build.input_types(node, 1))[0]
    build.store(buffer, store_kinds.RECORD_BUFFER, Materialized(), **build.serdes(node, TO_KEEP, left))
    operator = GraceLookupJoinOperator(join, buffer, node.grace_ms)
    return build.processor(node, operator, parents=parents, stores=(*view.stores, buffer))


def _check_grace(node: StreamTableJoin, build: Lowering, view: TableView, grace_ms: int, *, versioned: bool) -> None:
    if not versioned:
        raise TopologyError(
            f"{node} has grace=, but the table it looks into keeps no history: give the table "
            "materialized=Materialized(name, history_retention=...)"
        )
    history_ms = min(build.topology.stores[store].history_retention_ms or 0 for store in view.stores)
    if grace_ms > history_ms:
        raise TopologyError(
            f"{node} waits {grace_ms} ms, longer than the history of its table, which reaches back {history_ms} ms: "
            "shorten grace=, or lengthen history_retention="
        )


def global_table_join(node: GlobalTableJoin, build: Lowering) -> str:
    select_key = build.function(node, node.key_selector, ("key", "value"), build.input_types(node, 1).key)
    operator = LookupJoinOperator(
        build.view_of_table(node, 1), with_table_key(node, build), node.left_outer, select_key
    )
    columns = _look_up(node, node.key_selector, build)
    return build.processor(node, operator, parents=build.outputs(node)[:1], columns=columns)


def _look_up(node: StreamTableJoin | GlobalTableJoin, key: Function, build: Lowering) -> LookupForm | None:
    if not isinstance(node.joiner, Expr) or not isinstance(key, Expr):
        return None
    _, right = side_types(node, build.input_types(node), build.input_types(node, 1))
    result = build.types[node.name].value.python
    return LookupForm(node.joiner, key, node.left_outer, right.value.python, result)


def copartition(node: Node, build: Lowering) -> None:
    """Require equal numbers of partitions of all topics whose records a node combines."""
    sides = (topics_behind(build.graph, parent) for parent in build.graph.parents(node))
    build.topology.copartition(dict.fromkeys(topic for side in sides for topic in side))


def keyed(
    node: StreamJoin | SelfJoin | RetainedJoin | StreamTableJoin | GlobalTableJoin, build: Lowering
) -> Callable[[Any, Any, Any], Any]:
    """Return the joiner as `joiner(key, left, right)`."""
    joiner = node.joiner
    if isinstance(joiner, Expr):
        return build.join_function(node, joiner)
    return joiner if node.with_key else lambda key, left, right: joiner(left, right)


def with_table_key(node: StreamTableJoin | GlobalTableJoin, build: Lowering) -> Callable[[Any, Any, Any, Any], Any]:
    """Return the joiner as `joiner(key, table_key, left, right)`."""
    joiner = node.joiner
    if isinstance(node, GlobalTableJoin) and node.with_mapped_key and not isinstance(joiner, Expr):
        return joiner
    if node.with_key or isinstance(joiner, Expr):
        join = keyed(node, build)
        return lambda key, table_key, left, right: join(key, left, right)
    return lambda key, table_key, left, right: joiner(left, right)


def table_is_looked_up(node: Node, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """Demand that rows of the table can be looked up."""
    tables.look_up(parents[1])


OPERATORS = (
    OperatorDescriptor(node=StreamJoin, types=joined, topology=stream_join, store_named_by="store_name="),
    OperatorDescriptor(node=OuterStreamJoin, types=joined, topology=outer_stream_join, store_named_by="store_name="),
    OperatorDescriptor(node=RetainedJoin, types=joined, topology=retained_join, store_named_by="store_name="),
    OperatorDescriptor(
        node=OuterRetainedJoin, types=joined, topology=outer_retained_join, store_named_by="store_name="
    ),
    OperatorDescriptor(node=SelfJoin, types=joined, topology=self_join, store_named_by="store_name="),
    OperatorDescriptor(node=OuterSelfJoin, types=joined, topology=self_join, store_named_by="store_name="),
    OperatorDescriptor(
        node=StreamTableJoin,
        types=joined,
        topology=stream_table_join,
        tables=table_is_looked_up,
        store_named_by="name=",
    ),
    OperatorDescriptor(
        node=LeftStreamTableJoin,
        types=joined,
        topology=stream_table_join,
        tables=table_is_looked_up,
        store_named_by="name=",
    ),
    OperatorDescriptor(
        node=GlobalTableJoin, types=joined_globally, topology=global_table_join, tables=table_is_looked_up
    ),
    OperatorDescriptor(
        node=LeftGlobalTableJoin, types=joined_globally, topology=global_table_join, tables=table_is_looked_up
    ),
)

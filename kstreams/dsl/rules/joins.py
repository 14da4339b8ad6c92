"""Rules of the joins of a stream with a stream, a table or a global table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.copartition import topics_behind
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.analysis.types_of_joins import side_types
from kstreams.dsl.graph.joins import (
    GlobalTableJoin,
    LeftGlobalTableJoin,
    LeftStreamTableJoin,
    OuterStreamJoin,
    StreamJoin,
    StreamTableJoin,
)
from kstreams.dsl.lowering import Lowering, topology
from kstreams.dsl.materialized import Materialized
from kstreams.processor.operator import TableView
from kstreams.processor.operators.lookup_join import LookupJoin
from kstreams.processor.operators.stateless import PassOperator
from kstreams.processor.operators.stream_join import InnerStreamJoin, StreamJoinSide, StreamJoinWindow
from kstreams.processor.operators.stream_join import OuterStreamJoin as OuterJoinOperator
from kstreams.state.api import StoreKind

TO_KEEP = "to keep records for the join"


@topology.rule(StreamJoin)
def stream_join(node: StreamJoin, build: Lowering) -> str:
    _stores(node, build)
    left, right = _sides(node)
    return _join(node, build, InnerStreamJoin(left), InnerStreamJoin(right))


@topology.rule(OuterStreamJoin)
def outer_stream_join(node: OuterStreamJoin, build: Lowering) -> str:
    left_types, right_types = _stores(node, build)
    outer = node.names.outer_store
    serdes: dict[str, Any] = {
        "key": build.key_serde(node, TO_KEEP, left_types),
        "value": build.value_serde(node, TO_KEEP, left_types),
        "right_value": build.value_serde(node, TO_KEEP, right_types),
    }
    build.store(outer, StoreKind.OUTER_JOIN, Materialized(), **serdes)
    left, right = _sides(node)
    grace_ms = node.windows.grace_ms
    this = OuterJoinOperator(left, True, outer, grace_ms)
    other = OuterJoinOperator(right, node.right_outer, outer, grace_ms)
    return _join(node, build, this, other, outer)


def _stores(node: StreamJoin, build: Lowering) -> tuple[Types, Types]:
    """The window store of each side; returns the types of both sides."""
    sides = side_types(node, build.input_types(node, 0), build.input_types(node, 1))
    for name, types in zip((node.names.this_store, node.names.other_store), sides, strict=True):
        build.store(
            name,
            StoreKind.WINDOW,
            Materialized(),
            key=build.key_serde(node, TO_KEEP, types),
            value=build.value_serde(node, TO_KEEP, types),
            retention_ms=node.windows.retention_ms,
            window_size_ms=node.windows.size_ms,
            retain_duplicates=True,
        )
    return sides


def _sides(node: StreamJoin) -> tuple[StreamJoinSide, StreamJoinSide]:
    joiner, windows, names = keyed(node.joiner, node.with_key), node.windows, node.names
    left = StreamJoinSide(True, names.other_store, windows.before_ms, windows.after_ms, joiner)
    return left, StreamJoinSide(False, names.this_store, windows.after_ms, windows.before_ms, joiner)


def _join(node: StreamJoin, build: Lowering, this: Any, other: Any, *shared_stores: str) -> str:
    """Each side keeps its records behind its join; both joins meet in the node's own name."""
    names, (left, right) = node.names, build.outputs(node)
    _copartition(node, build)
    _step(node, build, names.this_windowed, StreamJoinWindow(names.this_store), left, names.this_store)
    _step(node, build, names.other_windowed, StreamJoinWindow(names.other_store), right, names.other_store)
    _step(node, build, names.this_join, this, names.this_windowed, names.other_store, *shared_stores)
    _step(node, build, names.other_join, other, names.other_windowed, names.this_store, *shared_stores)
    return build.step(node, PassOperator(), parents=(names.this_join, names.other_join))


def _step(node: StreamJoin, build: Lowering, name: str, operator: Any, parent: str, *stores: str) -> None:
    build.step(node, operator, name=name, parents=(parent,), stores=stores)


@topology.rule(StreamTableJoin, LeftStreamTableJoin)
def stream_table_join(node: StreamTableJoin, build: Lowering) -> str:
    _copartition(node, build)
    view = _view(node, build)
    versioned = any(build.topology.stores[store].kind is StoreKind.VERSIONED for store in view.stores)
    operator = LookupJoin(view, keyed(node.joiner, node.with_key), node.left, as_of=versioned)
    return build.step(node, operator, parents=build.outputs(node)[:1], stores=view.stores)


@topology.rule(GlobalTableJoin, LeftGlobalTableJoin)
def global_table_join(node: GlobalTableJoin, build: Lowering) -> str:
    operator = LookupJoin(_view(node, build), keyed(node.joiner, node.with_key), node.left, node.key_selector)
    return build.step(node, operator, parents=build.outputs(node)[:1])


def _view(node: StreamTableJoin | GlobalTableJoin, build: Lowering) -> TableView:
    view = build.view_of_parent(node, 1)
    assert view is not None, f"{node} asked for its table to be kept"
    return view


def _copartition(node: StreamJoin | StreamTableJoin, build: Lowering) -> None:
    sides = (topics_behind(build.graph, parent) for parent in build.graph.parents(node))
    build.topology.copartition(dict.fromkeys(topic for side in sides for topic in side))


def keyed(joiner: Callable[..., Any], with_key: bool) -> Callable[[Any, Any, Any], Any]:
    """The joiner as `joiner(key, left, right)`."""
    return joiner if with_key else lambda key, left, right: joiner(left, right)

"""Rule of a stream joined with itself on one store."""

from __future__ import annotations

from kstreams.dsl.analysis.types_of_joins import joined, side_types
from kstreams.dsl.graph import OuterSelfJoin, SelfJoin
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.joins import TO_KEEP, keyed
from kstreams.processor.operators.joins.stream_join import JoinWindowOperator, SelfJoinOperator, StreamJoinSide
from kstreams.state import store_kinds


def self_join(node: SelfJoin, build: Lowering) -> str:
    windows = node.windows
    (left_types, _) = side_types(node, build.input_types(node), build.input_types(node))
    store = build.store(
        node.store,
        store_kinds.WINDOW,
        Materialized(),
        key=build.key_serde(node, TO_KEEP, left_types),
        value=build.value_serde(node, TO_KEEP, left_types),
        retention_ms=windows.retention_ms,
        window_size_ms=windows.size_ms,
        retain_duplicates=True,
    )
    joiner = keyed(node, build)
    left = StreamJoinSide(True, store, windows.before_ms, windows.after_ms, joiner)
    right = StreamJoinSide(False, store, windows.after_ms, windows.before_ms, joiner)
    build.processor(
        node, JoinWindowOperator(store), name=node.windowed, parents=build.outputs(node)[:1], stores=(store,)
    )
    return build.processor(
        node, SelfJoinOperator(left, right, windows.retention_ms), parents=(node.windowed,), stores=(store,)
    )


OPERATORS = (
    OperatorDescriptor(node=SelfJoin, types=joined, topology=self_join, store_named_by="store_name="),
    OperatorDescriptor(node=OuterSelfJoin, types=joined, topology=self_join, store_named_by="store_name="),
)

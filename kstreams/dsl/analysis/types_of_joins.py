"""How types flow through joins, suppress and processors."""

from __future__ import annotations

from typing import Any

from kstreams.dsl.analysis.types import TypeOf, Types, types, unchanged
from kstreams.dsl.graph.joins import (
    GlobalTableJoin,
    LeftGlobalTableJoin,
    LeftStreamTableJoin,
    OuterStreamJoin,
    StreamJoin,
    StreamTableJoin,
)
from kstreams.dsl.graph.processors import Process
from kstreams.dsl.graph.suppress import Suppress
from kstreams.dsl.returned_types import returned_type

types.rule(Suppress)(unchanged)


@types.rule(StreamJoin, OuterStreamJoin, StreamTableJoin, LeftStreamTableJoin)
def joined(node: StreamJoin | StreamTableJoin, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(returned_type(node.joiner), node))


@types.rule(GlobalTableJoin, LeftGlobalTableJoin)
def joined_globally(node: GlobalTableJoin, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key, TypeOf(returned_type(node.joiner), node))


@types.rule(Process)
def processed(node: Process, parents: tuple[Types, ...]) -> Types:
    return Types(TypeOf(node.key, node), TypeOf(node.value, node))


def side_types(node: Any, left: Types, right: Types) -> tuple[Types, Types]:
    """The types of what a join reads: of the left side, and of the right side."""
    return (
        Types(left.key.or_declared(node.key, node), left.value.or_declared(node.value, node)),
        Types(right.key.or_declared(node.key, node), right.value.or_declared(node.other_value, node)),
    )

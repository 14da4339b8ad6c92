"""Type rules of joins."""

from __future__ import annotations

from typing import Any

from kstreams import expressions
from kstreams.dsl.analysis.key_types import check_keys
from kstreams.dsl.analysis.types import TypeOf, Types, naming
from kstreams.dsl.graph.joins import (
    GlobalTableJoin,
    RetainedJoin,
    SelfJoin,
    StreamJoin,
    StreamTableJoin,
)
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, TableJoin
from kstreams.dsl.return_annotations import return_type
from kstreams.expressions import Expr


def tables_joined(node: TableJoin | ForeignKeyJoin, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(joined_type(node, parents), node))


def joined(node: StreamJoin | SelfJoin | RetainedJoin | StreamTableJoin, parents: tuple[Types, ...]) -> Types:
    check_keys(str(node), parents[0].key, parents[1].key)
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(joined_type(node, parents), node))


def joined_globally(node: GlobalTableJoin, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key, TypeOf(joined_type(node, parents), node))


def joined_type(node: Any, parents: tuple[Types, ...]) -> Any:
    """Return the type of the result of a join: the declared one, else that of its joiner."""
    if node.result is not None:
        return node.result
    if not isinstance(node.joiner, Expr):
        return return_type(node.joiner)
    left, right = side_types(node, parents[0], parents[1])
    with naming(node):
        return expressions.result_type(
            node.joiner, key=left.key.python, value=left.value.python, right=right.value.python
        )


def side_types(node: Any, left: Types, right: Types) -> tuple[Types, Types]:
    """Return the types of the left and the right side of a join, as declared before or by the join."""
    key, value, other = (getattr(node, name, None) for name in ("key", "value", "other_value"))
    return (
        Types(left.key.or_declared(key, node), left.value.or_declared(value, node)),
        Types(right.key.or_declared(key, node), right.value.or_declared(other, node)),
    )

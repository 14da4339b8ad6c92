"""Rules of the joins of two tables."""

from __future__ import annotations

from kstreams.dsl.analysis.tables import Materialization, TableDemands
from kstreams.dsl.analysis.types_of_joins import tables_joined
from kstreams.dsl.graph import Node
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, TableJoin
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.joins import copartition
from kstreams.dsl.rules.tables import materialized_rows
from kstreams.expressions import Expr
from kstreams.processor.operators.joins.table_join import JoinedView, Joiner, TableJoinMergeOperator, TableJoinOperator
from kstreams.processor.operators.stateless import PassOperator


def table_join(node: TableJoin, build: Lowering) -> str:
    """Add a processor per side, which looks up rows of the other table; the node merges their results."""
    copartition(node, build)
    _side(node, build, 0)
    _side(node, build, 1)
    sides = node.this_join, node.other_join
    if node.materialized.name is None:
        left = build.view_of_table(node, 0)
        right = build.view_of_table(node, 1)
        build.set_view(node, JoinedView(left, right, keyed_joiner(node, build), node.left_outer, node.right_outer))
        return build.processor(node, PassOperator(), parents=sides)
    table_rows = materialized_rows(node, node.materialized.name, build)
    return build.processor(node, TableJoinMergeOperator(table_rows), parents=sides, stores=(table_rows.store,))


def _side(node: TableJoin, build: Lowering, position: int) -> None:
    other = build.view_of_table(node, 1 - position)
    joiner = keyed_joiner(node, build)
    outer = node.left_outer
    other_outer = node.right_outer
    if position == 1:
        joiner, outer, other_outer = _reversed(joiner), other_outer, outer
    versioned = build.is_versioned(build.parent(node, position))
    operator = TableJoinOperator(other, joiner, outer, other_outer, build.sends_old(node), versioned)
    name = (node.this_join, node.other_join)[position]
    build.processor(node, operator, name=name, parents=(build.outputs(node)[position],), stores=other.stores)


def keyed_joiner(node: TableJoin | ForeignKeyJoin, build: Lowering) -> Joiner:
    """Return the joiner as `joiner(key, left, right)`."""
    joiner = node.joiner
    if isinstance(joiner, Expr):
        return build.join_function(node, joiner)
    return lambda key, left, right: joiner(left, right)


def _reversed(joiner: Joiner) -> Joiner:
    return lambda key, this, other: joiner(key, other, this)


def both_are_looked_up(node: TableJoin, tables: TableDemands, parents: tuple[Node, ...]) -> None:
    """Demand lookups in both tables, and old values of outer sides: only a row that existed can be deleted."""
    for parent, outer in zip(parents, (node.left_outer, node.right_outer), strict=True):
        if outer:
            tables.send_old_values(parent, force=True)
    for parent in parents:
        tables.look_up(parent)


OPERATORS = (
    OperatorDescriptor(
        node=TableJoin,
        types=tables_joined,
        topology=table_join,
        materialization=Materialization.JOINED,
        tables=both_are_looked_up,
    ),
)

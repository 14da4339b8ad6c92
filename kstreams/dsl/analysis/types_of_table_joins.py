"""How types flow through joins of tables."""

from __future__ import annotations

from kstreams.dsl.analysis.types import TypeOf, Types
from kstreams.dsl.analysis.types_of_joins import joined_type
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, TableJoin


def tables_joined(node: TableJoin | ForeignKeyJoin, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(joined_type(node, parents), node))

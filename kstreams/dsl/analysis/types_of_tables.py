"""How types flow through tables, and tables that are grouped again."""

from __future__ import annotations

from kstreams.dsl import graph as g
from kstreams.dsl.analysis.types import TypeOf, Types, pair_returned_by, returned_by
from kstreams.dsl.return_annotations import return_type


def table_values_mapped(node: g.TableMapValues, parents: tuple[Types, ...]) -> Types:
    kind = node.value or returned_by(node, node.function, parents[0])
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(kind, node))


def regrouped(node: g.TableGroupBy, parents: tuple[Types, ...]) -> Types:
    key, value = pair_returned_by(node, node.function, parents[0])
    grouped = node.grouped
    return Types(TypeOf(grouped.key or key, node), TypeOf(grouped.value or value, node))


def table_aggregated(node: g.TableAggregate, parents: tuple[Types, ...]) -> Types:
    (parent,) = parents
    key = parent.key.or_declared(node.key, node)
    if node.value is not None:
        return Types(key, TypeOf(node.value, node))
    if isinstance(node.aggregation, g.TableReduce):
        return Types(key, parent.value)
    if isinstance(node.aggregation, g.TableCount):
        return Types(key, TypeOf(int, node))
    fold = node.aggregation
    return Types(key, TypeOf(return_type(fold.adder) or return_type(fold.initializer), node))

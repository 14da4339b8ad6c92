"""How types flow through sources, sinks and operators that keep nothing."""

from __future__ import annotations

from typing import Any

from kstreams.dsl import graph as g
from kstreams.dsl.analysis.types import TypeOf, Types, pair_returned_by, returned_by
from kstreams.dsl.return_annotations import return_items, return_pairs
from kstreams.expressions import Expr


def source(node: g.StreamSource, parents: tuple[Types, ...]) -> Types:
    return Types(TypeOf(node.consumed.key, node), TypeOf(node.consumed.value, node))


def declared(node: g.To, parents: tuple[Types, ...]) -> Types:
    (parent,) = parents
    return Types(parent.key.or_declared(node.key, node), parent.value.or_declared(node.value, node))


def merged(node: g.Merge, parents: tuple[Types, ...]) -> Types:
    first = parents[0]
    same_key = all(other.key.kind == first.key.kind for other in parents)
    same_value = all(other.value.kind == first.value.kind for other in parents)
    unknown = TypeOf(None, node)
    return Types(first.key if same_key else unknown, first.value if same_value else unknown)


def mapped(node: g.Map, parents: tuple[Types, ...]) -> Types:
    return _of_pair(node, pair_returned_by(node, node.function, parents[0]))


def flat_mapped(node: g.FlatMap, parents: tuple[Types, ...]) -> Types:
    return _of_pair(node, return_pairs(node.function))


def _of_pair(node: g.Map | g.FlatMap, returned: tuple[Any, Any]) -> Types:
    key, value = returned
    return Types(TypeOf(node.key or key, node), TypeOf(node.value or value, node))


def values_mapped(node: g.MapValues, parents: tuple[Types, ...]) -> Types:
    kind = node.value or returned_by(node, node.function, parents[0])
    return Types(parents[0].key, TypeOf(kind, node))


def batch_mapped(node: g.MapBatch, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key, TypeOf(node.value, node))


def values_flat_mapped(node: g.FlatMapValues, parents: tuple[Types, ...]) -> Types:
    annotated = None if isinstance(node.function, Expr) else return_items(node.function)
    return Types(parents[0].key, TypeOf(node.value or annotated, node))


def rekeyed(node: g.SelectKey, parents: tuple[Types, ...]) -> Types:
    kind = node.key or returned_by(node, node.function, parents[0])
    return Types(TypeOf(kind, node), parents[0].value)

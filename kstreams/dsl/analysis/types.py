"""How key and value types flow: an operator declares them, its function's annotation tells, or its parent's stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from kstreams import expressions
from kstreams.dsl import graph as g
from kstreams.dsl.graph import LogicalGraph, Node, Typing
from kstreams.dsl.returned_types import returned_items, returned_pair, returned_pairs, returned_type
from kstreams.dsl.rule_book import RuleBook
from kstreams.errors import KStreamsError, SerdeError, TopologyError
from kstreams.expressions import Expr
from kstreams.serdes import Serde, serde_of


@dataclass(frozen=True, slots=True)
class TypeOf:
    """A type or serde, and the operator that set it; `kind` None: unknown since that operator."""

    kind: Typing
    origin: Node

    def or_declared(self, kind: Typing, node: Node) -> TypeOf:
        """What the operator declares, else this."""
        return self if kind is None else TypeOf(kind, node)

    @property
    def python(self) -> Any:
        """The Python type, where it is known."""
        return self.kind.type if isinstance(self.kind, Serde) else self.kind


class Types(NamedTuple):
    """The types of what an operator puts out."""

    key: TypeOf
    value: TypeOf


TypeRule = Callable[[Any, tuple[Types, ...]], Types]
types: RuleBook[TypeRule] = RuleBook("the flow of types")
"""`rule(node, types of its parents) -> its own`. A test demands one for every node type."""


def flow_types(graph: LogicalGraph) -> Mapping[str, Types]:
    """The types of every operator's output, by name."""
    flow: dict[str, Types] = {}
    for node in graph:
        flow[node.name] = types.rule_for(node)(node, tuple(flow[parent] for parent in node.parents))
    return flow


def required_serde(what: TypeOf, node: Node, side: str, purpose: str) -> Serde[Any]:
    """The serde of a known type.

    Parameters
    ----------
    what : TypeOf
        What flows.
    node : Node
        The operator that needs bytes.
    side : {"key", "value"}
        For the error.
    purpose : str
        What it needs bytes for, as "to write topic 'out'".

    Raises
    ------
    TopologyError
        When the type is unknown or has no serde: names the operator, the user's line and what to write.
    """
    if what.kind is None:
        raise TopologyError(_unknown(what, node, side, purpose))
    try:
        return serde_of(what.kind)
    except SerdeError as error:
        raise TopologyError(f"{node} cannot turn its {side} into bytes {purpose}: {error}") from error


def _unknown(what: TypeOf, node: Node, side: str, purpose: str) -> str:
    if what.origin is node:
        return f"{node} must know the type of its {side} {purpose}: write {side}=<type> there"
    return (
        f"{node} must know the type of its {side} {purpose}, but it is unknown since {what.origin}: "
        f"write {side}=<type> at {node.called}, or annotate what the function of {what.origin.called} returns"
    )


@types.rule(g.StreamSource, g.TableSource, g.GlobalTableSource)
def source(node: g.StreamSource, parents: tuple[Types, ...]) -> Types:
    return Types(TypeOf(node.consumed.key, node), TypeOf(node.consumed.value, node))


@types.rule(g.Filter, g.Peek, g.Foreach, g.Print, g.Split, g.Branch, g.ToStream, g.TableRepartition)
def unchanged(node: Node, parents: tuple[Types, ...]) -> Types:
    return parents[0]


@types.rule(g.To, g.Repartition, g.ToTable, g.TableFilter)
def declared(node: g.To, parents: tuple[Types, ...]) -> Types:
    (parent,) = parents
    return Types(parent.key.or_declared(node.key, node), parent.value.or_declared(node.value, node))


@types.rule(g.Merge)
def merged(node: g.Merge, parents: tuple[Types, ...]) -> Types:
    first = parents[0]
    same_key = all(other.key.kind == first.key.kind for other in parents)
    same_value = all(other.value.kind == first.value.kind for other in parents)
    unknown = TypeOf(None, node)
    return Types(first.key if same_key else unknown, first.value if same_value else unknown)


@types.rule(g.Map)
def mapped(node: g.Map, parents: tuple[Types, ...]) -> Types:
    return _of_pair(node, _returned_pair(node, node.function, parents[0]))


@types.rule(g.FlatMap)
def flat_mapped(node: g.FlatMap, parents: tuple[Types, ...]) -> Types:
    return _of_pair(node, returned_pairs(node.function))


def _of_pair(node: g.Map | g.FlatMap, returned: tuple[Any, Any]) -> Types:
    key, value = returned
    return Types(TypeOf(node.key or key, node), TypeOf(node.value or value, node))


@types.rule(g.MapValues)
def values_mapped(node: g.MapValues, parents: tuple[Types, ...]) -> Types:
    kind = node.value or _returned(node, node.function, parents[0])
    return Types(parents[0].key, TypeOf(kind, node))


@types.rule(g.MapBatch)
def batch_mapped(node: g.MapBatch, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key, TypeOf(node.value, node))


@types.rule(g.TableMapValues)
def table_values_mapped(node: g.TableMapValues, parents: tuple[Types, ...]) -> Types:
    kind = node.value or _returned(node, node.function, parents[0])
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(kind, node))


@types.rule(g.FlatMapValues)
def values_flat_mapped(node: g.FlatMapValues, parents: tuple[Types, ...]) -> Types:
    annotated = None if isinstance(node.function, Expr) else returned_items(node.function)
    return Types(parents[0].key, TypeOf(node.value or annotated, node))


@types.rule(g.SelectKey)
def rekeyed(node: g.SelectKey, parents: tuple[Types, ...]) -> Types:
    kind = node.key or _returned(node, node.function, parents[0])
    return Types(TypeOf(kind, node), parents[0].value)


def _returned_pair(node: Node, function: g.PairFunction, parent: Types) -> tuple[Any, Any]:
    if not isinstance(function, tuple):
        return returned_pair(function)
    key, value = function
    return _returned(node, key, parent), _returned(node, value, parent)


def _returned(node: Node, function: g.Function, parent: Types) -> Any:
    with naming(node):
        return type_given_by(function, parent)


def type_given_by(function: g.Function, parent: Types) -> Any:
    """The type of what a function of key or value says it gives, or an expression over both gives; None: not known."""
    if not isinstance(function, Expr):
        return returned_type(function)
    return expressions.result_type(function, key=parent.key.python, value=parent.value.python)


@contextmanager
def naming(node: object) -> Iterator[None]:
    """Errors of expressions, which know no operator, become errors that name it and the user's line."""
    try:
        yield
    except KStreamsError as error:
        raise TopologyError(f"{node}: {error}") from error


@types.rule(g.StreamAggregate)
def aggregated(node: g.StreamAggregate, parents: tuple[Types, ...]) -> Types:
    grouped = grouped_types(node, parents[0])
    return Types(grouped.key.or_declared(node.key, node), aggregate_type(node, grouped))


@types.rule(g.TableGroupBy)
def regrouped(node: g.TableGroupBy, parents: tuple[Types, ...]) -> Types:
    key, value = _returned_pair(node, node.function, parents[0])
    grouped = node.grouped
    return Types(TypeOf(grouped.key or key, node), TypeOf(grouped.value or value, node))


@types.rule(g.TableAggregate)
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
    return Types(key, TypeOf(returned_type(fold.adder) or returned_type(fold.initializer), node))


def grouped_types(node: g.StreamAggregate | g.WindowedAggregate, parent: Types) -> Types:
    """The types of the records that are aggregated."""
    grouped = node.grouped
    return Types(parent.key.or_declared(grouped.key, node), parent.value.or_declared(grouped.value, node))


def expression_aggregation(node: g.StreamAggregate | g.WindowedAggregate, parent: Types) -> Any:
    """The aggregation that the named expressions of a node make up."""
    assert isinstance(node.aggregation, g.Expressions)
    grouped = grouped_types(node, parent)
    result = node.value.type if isinstance(node.value, Serde) else node.value
    with naming(node):
        return expressions.aggregation(
            node.aggregation.fields, key=grouped.key.python, value=grouped.value.python, result=result
        )


def aggregate_type(node: g.StreamAggregate | g.WindowedAggregate, grouped: Types) -> TypeOf:
    """The type of what others see of an aggregate."""
    if node.value is not None:
        return TypeOf(node.value, node)
    if isinstance(node.aggregation, g.Reduce):
        return grouped.value
    return TypeOf(_AGGREGATE_TYPES[type(node.aggregation)](node, grouped), node)


def _fold_type(node: g.StreamAggregate | g.WindowedAggregate, grouped: Types) -> Any:
    fold = node.aggregation
    assert isinstance(fold, g.Fold)
    return returned_type(fold.aggregator) or returned_type(fold.initializer)


_AGGREGATE_TYPES: dict[type, Callable[[Any, Types], Any]] = {
    g.Count: lambda node, grouped: int,
    g.Fold: _fold_type,
    g.Expressions: lambda node, grouped: expression_aggregation(node, grouped).value_type,
}

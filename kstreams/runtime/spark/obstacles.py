"""What keeps a node off the relational path: a book of checks by node type. Pure; knows no Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kstreams.dsl import graph as g
from kstreams.dsl.analysis.types import TypeOf, Types, flow_types
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.rule_book import RuleBook
from kstreams.errors import KStreamsError
from kstreams.expressions import Expr, Operation
from kstreams.serdes import serde_of
from kstreams.serdes.json_columns import JsonColumns


@dataclass(frozen=True)
class Facts:
    """A logical graph and the types that flow through it."""

    graph: LogicalGraph

    @cached_property
    def types(self) -> dict[str, Types]:
        """What flows out of every node."""
        return dict(flow_types(self.graph))

    def of_parent(self, node: Node, position: int = 0) -> Types:
        """What flows into a node."""
        return self.types[node.parents[position]]


Obstacle = Callable[[Any, Facts], str | None]
obstacles: RuleBook[Obstacle] = RuleBook("Spark's relational path")
"""`check(node, facts)` -> why not, or None. Who has no check here has no rule either, for the declared reason."""


def obstacle(node: Node, facts: Facts) -> str | None:
    """Why a node cannot take the relational path; None when it can."""
    if not obstacles.supports(type(node)):
        return obstacles.unsupported.get(type(node), "it has no rule there")
    return obstacles.rule_for(node)(node, facts)


@obstacles.rule(g.StreamSource)
def source(node: g.StreamSource, facts: Facts) -> str | None:
    if node.pattern is not None:
        return "topics that match a pattern are found by the task path"
    if node.consumed.timestamp_extractor is not None:
        return "its timestamp extractor takes records one after the other"
    return _unknown(facts.types[node.name].key, "key") or _unknown(facts.types[node.name].value, "value")


@obstacles.rule(g.Filter)
def filter_(node: g.Filter, facts: Facts) -> str | None:
    return _unreadable(node.predicate, facts.of_parent(node))


@obstacles.rule(g.MapValues, g.SelectKey)
def one_to_one(node: g.MapValues, facts: Facts) -> str | None:
    made = facts.types[node.name]
    if isinstance(node.function, Expr) and node.function.operation is Operation.STRUCT:
        return "ks.struct builds objects"
    side = "value" if isinstance(node, g.MapValues) else "key"
    return _unreadable(node.function, facts.of_parent(node)) or _unknown(getattr(made, side), side)


@obstacles.rule(g.Map, g.FlatMap, g.FlatMapValues)
def python_only(node: g.Map, facts: Facts) -> str | None:
    made = facts.types[node.name]
    return (
        _unreadable(node.function, facts.of_parent(node)) or _unknown(made.key, "key") or _unknown(made.value, "value")
    )


@obstacles.rule(g.Split)
def split(node: g.Split, facts: Facts) -> str | None:
    return _first(_unreadable(predicate, facts.of_parent(node)) for predicate in node.predicates)


@obstacles.rule(g.Branch)
def branch(node: g.Branch, facts: Facts) -> str | None:
    return None


@obstacles.rule(g.Merge)
def merge(node: g.Merge, facts: Facts) -> str | None:
    made = facts.types[node.name]
    return _unknown(made.key, "key") or _unknown(made.value, "value")


@obstacles.rule(g.To)
def to(node: g.To, facts: Facts) -> str | None:
    if callable(node.topic):
        return "its topic is chosen per record"
    if node.partitioner is not None:
        return "its partitioner takes records one by one"
    return None


@obstacles.rule(g.Repartition)
def repartition(node: g.Repartition, facts: Facts) -> str | None:
    if node.partitioner is not None:
        return "its partitioner takes records one by one"
    made = facts.types[node.name]
    return _unknown(made.key, "key") or _unknown(made.value, "value")


_CHANGES = "a change stream with tombstones has no form in Spark"
_REASONS = {
    g.Peek: "its function is called for its effect",
    g.Foreach: "its function is called for its effect",
    g.Print: "it prints record by record",
    g.Process: "a processor takes records one by one",
    g.StreamAggregate: _CHANGES,
    g.Suppress: "what is held back is a change stream",
    g.StreamTableJoin: "Spark has batches, no time between stream and table",
    g.LeftStreamTableJoin: "Spark has batches, no time between stream and table",
    g.OuterStreamJoin: "unmatched rows wait for the watermarks of both sides, and an idle side holds them back",
    g.GlobalTableJoin: "a static side is frozen when the query starts",
    g.LeftGlobalTableJoin: "a static side is frozen when the query starts",
    g.TableSource: _CHANGES,
    g.GlobalTableSource: "it is loaded before everything else",
    g.TableFilter: _CHANGES,
    g.TableMapValues: _CHANGES,
    g.ToTable: _CHANGES,
    g.ToStream: _CHANGES,
    g.TableAggregate: _CHANGES,
    g.TableGroupBy: _CHANGES,
    g.TableRepartition: _CHANGES,
}


def _unknown(kind: TypeOf, side: str) -> str | None:
    if kind.kind is None:
        return f"the type of its {side} is not known"
    try:
        serde_of(kind.kind)
    except KStreamsError as error:
        return str(error)
    return None


def _unreadable(function: Any, types: Types) -> str | None:
    """Why an expression's columns, or a function's arguments, cannot be had from the bytes."""
    if not isinstance(function, Expr):
        return _unknown(types.key, "key") or _unknown(types.value, "value")
    return _first(_undecodable(leaf, types) for leaf in function.leaves)


def _undecodable(leaf: Expr, types: Types) -> str | None:
    if leaf.operation is Operation.TIMESTAMP:
        return None
    try:
        if leaf.operation is Operation.FIELD:
            JsonColumns(types.value.python, [str(leaf.detail)])
            return None
        side = {Operation.KEY: types.key, Operation.VALUE: types.value}.get(leaf.operation)
        if side is None or side.kind is None or serde_of(side.kind).arrow_type is None:
            return f"{leaf!r} has no columnar form"
    except KStreamsError as error:
        return str(error)
    return None


def _first(reasons: Iterable[str | None]) -> str | None:
    return next((reason for reason in reasons if reason is not None), None)


for _kind, _reason in _REASONS.items():
    obstacles.declare_unsupported(_kind, _reason)

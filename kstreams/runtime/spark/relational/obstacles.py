"""What keeps a node off the relational path: a book of checks by node type. Pure; knows no Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kstreams.dsl import graph as g
from kstreams.dsl.aggregation.emit import EmitStrategy
from kstreams.dsl.analysis.null_keys import repartitions_with_null_keys
from kstreams.dsl.analysis.types import TypeOf, Types, expression_aggregation, flow_types
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.graph.cogroups import Cogroup, WindowedCogroup
from kstreams.dsl.graph.table_joins import ForeignKeyJoin, TableJoin
from kstreams.dsl.graph.tables import TableTransformValues
from kstreams.dsl.rule_book import RuleBook
from kstreams.errors import KStreamsError
from kstreams.expressions import Aggregation, Expr, Operation, counting
from kstreams.expressions.frame import refusal
from kstreams.serdes import serde_of
from kstreams.serdes.json_columns import JsonColumns
from kstreams.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows


@dataclass(frozen=True)
class Facts:
    """A logical graph and the types that flow through it."""

    graph: LogicalGraph

    @cached_property
    def types(self) -> dict[str, Types]:
        """What flows out of every node."""
        return dict(flow_types(self.graph))

    @cached_property
    def with_null_keys(self) -> frozenset[str]:
        """The repartitions that records without a key pass."""
        return repartitions_with_null_keys(self.graph)

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
    if getattr(node, "calls", None) is not None:
        return "async functions are called by tasks"
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
    if isinstance(node.function, tuple):
        return "its key and value are two expressions: select_key and map_values in turn have a form in Spark"
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
    if not isinstance(node.topic, str):
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


@obstacles.rule(g.WindowedAggregate)
def windowed_aggregate(node: g.WindowedAggregate, facts: Facts) -> str | None:
    if not isinstance(node.windows, TimeWindows):
        return _WINDOWS[type(node.windows)]
    if not isinstance(node.aggregation, g.Count | g.Expressions):
        return "it aggregates by a Python function"
    if node.emit is not EmitStrategy.ON_WINDOW_CLOSE and not _suppressed(node, facts):
        return "every update of a window is asked for"
    made, taken = facts.types[node.name], facts.of_parent(node)
    slots = _slots(node, taken)
    refused = _first(refusal(slot) for slot in slots)
    if refused is not None:
        return refused
    reads = (_undecodable(leaf, taken) for slot in slots for leaf in slot.leaves)
    return _first(reads) or _unknown(made.key, "key") or _unknown(made.value, "value")


_WINDOWS: dict[type, str] = {
    UnlimitedWindows: "its windows have no end",
    SlidingWindows: "Spark has no windows that lie around each record",
    SessionWindows: "Spark's sessions leave out the gap itself, know no grace, and emit no deletions",
}
"""Why windows have no form in Spark."""


@obstacles.rule(g.Suppress)
def suppress(node: g.Suppress, facts: Facts) -> str | None:
    if not _ends_windows(node, facts):
        return "what is held back is a change stream"
    return None


@obstacles.rule(g.ToStream)
def to_stream(node: g.ToStream, facts: Facts) -> str | None:
    parent = facts.graph[node.parents[0]]
    final = isinstance(parent, g.Suppress) and _ends_windows(parent, facts)
    if final or (isinstance(parent, g.WindowedAggregate) and parent.emit is EmitStrategy.ON_WINDOW_CLOSE):
        return None
    return _CHANGES


@obstacles.rule(g.StreamJoin)
def stream_join(node: g.StreamJoin, facts: Facts) -> str | None:
    if isinstance(node, g.OuterStreamJoin):
        return "unmatched rows wait for the watermarks of both sides, and an idle side holds them back"
    if isinstance(node.joiner, Expr):
        return "its joiner is an expression over two frames"
    made, left, right = facts.types[node.name], facts.of_parent(node, 0), facts.of_parent(node, 1)
    return (
        _unknown(left.key, "key")
        or _unknown(left.value.or_declared(node.value, node), "left value")
        or _unknown(right.value.or_declared(node.other_value, node), "right value")
        or _unknown(made.value, "result")
    )


def slots_of(node: g.WindowedAggregate, taken: Types) -> Aggregation:
    """The aggregation of a node that has one of expressions."""
    return counting() if isinstance(node.aggregation, g.Count) else expression_aggregation(node, taken)


def _slots(node: g.WindowedAggregate, taken: Types) -> tuple[Expr, ...]:
    return slots_of(node, taken).slots


def _suppressed(node: g.WindowedAggregate, facts: Facts) -> bool:
    children = facts.graph.children(node)
    return bool(children) and all(isinstance(child, g.Suppress) and _ends_windows(child, facts) for child in children)


def _ends_windows(node: g.Suppress, facts: Facts) -> bool:
    parent = facts.graph[node.parents[0]]
    return node.suppressed.time_limit_ms is None and isinstance(parent, g.WindowedAggregate)


def window_of(node: Node) -> TimeWindows | JoinWindows | None:
    """The windows of a node for which Spark keeps state on the relational path."""
    return node.windows if isinstance(node, g.WindowedAggregate | g.StreamJoin) else None  # type: ignore[return-value]


def windowed_obstacle(node: Node, nodes: Iterable[Node], facts: Facts) -> str | None:
    """What keeps a node out of a query in which Spark keeps the state of windows."""
    windowed = [other for other in nodes if window_of(other) is not None]
    if not windowed:
        return "its sub-topology keeps state"
    if len(windowed) > 1:
        return f"only one of {len(windowed)} windows of a sub-topology can be Spark's" if node in windowed else None
    if isinstance(node, g.Repartition):
        return "a windowed query reads and writes topics of the log only"
    before = windowed[0] in facts.graph.downstream(node) and node is not windowed[0]
    if before and any(not isinstance(function, Expr) for function in _functions(node)):
        return "a Python function before a window would see the row that ends the input"
    return None


def _functions(node: Node) -> list[Any]:
    given = [getattr(node, name, None) for name in ("function", "predicate")]
    return [function for function in (*given, *getattr(node, "predicates", ())) if function is not None]


_CHANGES = "a change stream with tombstones has no form in Spark"
_REASONS = {
    g.MapBatch: "batches are cut by tasks",
    g.Peek: "its function is called for its effect",
    g.Foreach: "its function is called for its effect",
    g.Print: "it prints record by record",
    g.Process: "a processor takes records one by one",
    g.ProcessValues: "a processor takes records one by one",
    g.GlobalStore: "it is loaded before everything else",
    g.StreamAggregate: _CHANGES,
    g.StreamTableJoin: "Spark has batches, no time between stream and table",
    g.LeftStreamTableJoin: "Spark has batches, no time between stream and table",
    g.OuterStreamJoin: "unmatched rows wait for the watermarks of both sides, and an idle side holds them back",
    g.SelfJoin: "Spark keeps the records of both sides",
    g.OuterSelfJoin: "Spark keeps the records of both sides",
    g.GlobalTableJoin: "a static side is frozen when the query starts",
    g.LeftGlobalTableJoin: "a static side is frozen when the query starts",
    g.TableSource: _CHANGES,
    g.GlobalTableSource: "it is loaded before everything else",
    g.TableFilter: _CHANGES,
    g.TableMapValues: _CHANGES,
    g.ToTable: _CHANGES,
    g.TableAggregate: _CHANGES,
    g.TableGroupBy: _CHANGES,
    g.TableRepartition: _CHANGES,
    TableTransformValues: "a processor takes updates one by one",
    TableJoin: _CHANGES,
    ForeignKeyJoin: _CHANGES,
    Cogroup: "several streams write one state, each by a Python function",
    WindowedCogroup: "several streams write one state, each by a Python function",
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
    return refusal(function) or _first(_undecodable(leaf, types) for leaf in function.leaves)


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

"""Which sub-topologies can be a windowed query, for which Spark keeps the state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.expressions import Expr
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.windows import JoinWindows, SessionWindows, TimeWindows


def window_of(node: Node) -> TimeWindows | SessionWindows | JoinWindows | None:
    """The windows of a node for which Spark keeps state on the relational path."""
    return node.windows if isinstance(node, g.WindowedAggregate | g.StreamJoin | g.SelfJoin) else None  # type: ignore[return-value]


def unsupported_in_windowed_query(node: Node, nodes: Iterable[Node], typed: TypedGraph) -> str | None:
    """What keeps a node out of a query in which Spark keeps the state of windows."""
    windowed = [other for other in nodes if window_of(other) is not None]
    if not windowed:
        return "its sub-topology keeps state"
    if len(windowed) > 1:
        return f"only one of {len(windowed)} windows of a sub-topology can be Spark's" if node in windowed else None
    if isinstance(node, g.Repartition):
        return "a windowed query reads and writes topics of the log only"
    before = windowed[0] in typed.graph.downstream(node) and node is not windowed[0]
    if before and any(not isinstance(function, Expr) for function in _functions(node)):
        return "a Python function before a window would see the row that ends the input"
    return None


def _functions(node: Node) -> list[Any]:
    given = [getattr(node, name, None) for name in ("function", "predicate")]
    return [function for function in (*given, *getattr(node, "predicates", ())) if function is not None]

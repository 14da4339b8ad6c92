"""Which operators can be a query for which Spark keeps the state."""

from __future__ import annotations

from collections.abc import Iterable

from kstreams.dsl import graph as g
from kstreams.dsl.aggregation.emit import EmitStrategy
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.windows import JoinWindows, SessionWindows, TimeWindows

KEPT_IN_TASKS = "its rows are asked for in a store, which tasks keep"


def window_of(node: Node) -> TimeWindows | SessionWindows | JoinWindows | None:
    """The windows of a node for which Spark keeps state on the relational path."""
    return node.windows if isinstance(node, g.WindowedAggregate | g.StreamJoin | g.SelfJoin) else None  # type: ignore[return-value]


def delay_of(node: Node) -> int:
    """How far the watermark stays behind the greatest time seen, in milliseconds.

    A window is final when the greatest time seen is its end and the grace: the grace is the delay. Where Python
    functions aggregate, what is older than the watermark belongs to closed windows only.
    """
    if isinstance(node, g.Deduplicate):
        return node.supplier.retention_ms
    windows = window_of(node)
    assert windows is not None
    if isinstance(node, g.WindowedAggregate) and isinstance(windows, TimeWindows) and not by_expression(node):
        return windows.size_ms + windows.grace_ms
    return windows.grace_ms


def follows_time(node: Node) -> bool:
    """Whether Spark forgets the state of a node in the course of time."""
    return window_of(node) is not None or isinstance(node, g.Deduplicate)


def keeps_state(node: Node) -> bool:
    """Whether Spark keeps state for a node on the relational path."""
    return follows_time(node) or isinstance(node, g.StreamAggregate | g.StreamTableJoin)


def is_final(node: g.WindowedAggregate, typed: TypedGraph) -> bool:
    """Whether only the last result of each window is asked for."""
    return node.emit is EmitStrategy.ON_WINDOW_CLOSE or _suppressed(node, typed)


def by_expression(node: g.WindowedAggregate) -> bool:
    """Whether Spark itself can aggregate: no Python function does."""
    return isinstance(node.aggregation, g.Count | g.Expressions)


def takes_one_by_one(node: Node) -> bool:
    """Whether Spark hands records and states of a node to Python, as it does in streaming queries only."""
    if isinstance(node, g.WindowedAggregate):
        return not by_expression(node)
    return isinstance(node, g.StreamAggregate | g.StreamTableJoin | g.Deduplicate)


def gives_updates(node: Node, typed: TypedGraph) -> bool:
    """Whether Spark is to hand over, with each step, the windows of a node that it changed."""
    return isinstance(node, g.WindowedAggregate) and by_expression(node) and not is_final(node, typed)


def waits_for_the_end(node: Node, typed: TypedGraph) -> bool:
    """Whether a node needs the row that ends the input, or its last results would wait for ever."""
    return is_final(node, typed) if isinstance(node, g.WindowedAggregate) else window_of(node) is not None


def _suppressed(node: g.WindowedAggregate, typed: TypedGraph) -> bool:
    children = typed.graph.children(node)
    return bool(children) and all(isinstance(child, g.Suppress) and ends_windows(child, typed) for child in children)


def ends_windows(node: g.Suppress, typed: TypedGraph) -> bool:
    """Whether a node holds back windows until they are final."""
    parent = typed.graph[node.parents[0]]
    return node.suppressed.time_limit_ms is None and isinstance(parent, g.WindowedAggregate)


def unsupported_in_query(node: Node, nodes: Iterable[Node], typed: TypedGraph) -> str | None:
    """What keeps a node out of a query in which Spark keeps the state of some of these nodes."""
    stateful = [other for other in nodes if keeps_state(other)]
    if _is_named(node) and not any(node is keeper or node.name in keeper.parents for keeper in stateful):
        return KEPT_IN_TASKS
    if len(stateful) > 1:
        return f"only one of {len(stateful)} states of a query can be Spark's" if node in stateful else None
    if node in stateful and _ways_out(node, typed) > 1 and parting(nodes, typed) is None:
        return "its rows go several ways and meet others there: Spark would compute them once for each"
    return None


def _is_named(node: Node) -> bool:
    """Whether the rows of a node are in a store that has a name of the user's."""
    materialized = getattr(node, "materialized", None)
    return materialized is not None and materialized.name is not None


def parting(nodes: Iterable[Node], typed: TypedGraph) -> Node | None:
    """The node of a query whose rows go several ways: they are computed once, and each batch goes on from there."""
    several = [node for node in nodes if keeps_state(node) and _ways_out(node, typed) > 1]
    return next((node for node in several if not _meets_others(node, typed)), None)


def _meets_others(node: Node, typed: TypedGraph) -> bool:
    """Whether rows of other nodes come in behind a node; a global table has all that it needs."""
    inside = {each.name for each in typed.graph.downstream(node)}
    parents = (typed.graph[parent] for name in inside - {node.name} for parent in typed.graph[name].parents)
    return any(parent.name not in inside and not isinstance(parent, g.GlobalTableSource) for parent in parents)


def _ways_out(node: Node, typed: TypedGraph) -> int:
    """By how many ways the rows of a node reach a sink: each is computed for itself."""
    return isinstance(node, g.To) + sum(_ways_out(child, typed) for child in typed.graph.children(node))

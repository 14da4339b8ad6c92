"""The kinds of state that Spark keeps for operators, and how long it keeps them."""

from __future__ import annotations

from kstreams.dsl import graph as g
from kstreams.dsl.graph import EmitStrategy, Node
from kstreams.errors import TopologyError
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.windows import JoinWindows, SessionWindows, TimeWindows


def window_of(node: Node) -> TimeWindows | SessionWindows | JoinWindows | None:
    """Return the windows of a node for which Spark keeps state on the relational path."""
    return node.windows if isinstance(node, g.WindowedAggregate | g.StreamJoin | g.SelfJoin) else None  # type: ignore[return-value]


def delay_of(node: Node) -> int:
    """Return the delay of the watermark of a node in milliseconds; Spark closes a window at the watermark."""
    if isinstance(node, g.Deduplicate):
        return node.supplier.retention_ms
    windows = window_of(node)
    if windows is None:
        raise TopologyError(f"{node} has no windows that the watermark could close")
    return windows.grace_ms


def follows_time(node: Node) -> bool:
    """Return True if Spark deletes the state of a node as time advances."""
    return window_of(node) is not None or isinstance(node, g.Deduplicate)


def keeps_state(node: Node) -> bool:
    """Return True if Spark keeps state for a node on the relational path."""
    return follows_time(node) or isinstance(node, g.StreamAggregate | g.StreamTableJoin)


def is_final(node: g.WindowedAggregate, typed: TypedGraph) -> bool:
    """Return True if only the last result of each window is emitted."""
    return node.emit is EmitStrategy.ON_WINDOW_CLOSE or _suppressed(node, typed)


def emits_updates(node: Node, typed: TypedGraph) -> bool:
    """Return True if a query emits the windows of a node that changed in each step."""
    return isinstance(node, g.WindowedAggregate) and not is_final(node, typed)


def waits_for_the_end(node: Node, typed: TypedGraph) -> bool:
    """Return True if a node emits its last results only after the row that ends the input."""
    return is_final(node, typed) if isinstance(node, g.WindowedAggregate) else window_of(node) is not None


def _suppressed(node: g.WindowedAggregate, typed: TypedGraph) -> bool:
    children = typed.graph.children(node)
    return bool(children) and all(isinstance(child, g.Suppress) and ends_windows(child, typed) for child in children)


def ends_windows(node: g.Suppress, typed: TypedGraph) -> bool:
    """Return True if a node holds windows back until they are final."""
    parent = typed.graph[node.parents[0]]
    return node.suppressed.time_limit_ms is None and isinstance(parent, g.WindowedAggregate)

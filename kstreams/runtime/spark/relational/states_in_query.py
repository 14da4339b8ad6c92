"""Rules for operators in one query for which Spark keeps state, and for the node at which such a query branches.

Several states can be Spark's when all are windows that hand over what is final: beside each other, or of each other's
results. There is one watermark: those that are first have the same grace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.windowed_query import (
    by_expression,
    delay_of,
    follows_time,
    is_final,
    keeps_state,
)
from kstreams.windows import TimeWindows

KEPT_IN_TASKS = "its rows are asked for in a store, which tasks keep"
_ONE_STATE = "only one of {} states of a query can be Spark's, unless all are final windows by expression"
_ACROSS = "its windows are not made of whole windows of {}, whose results come to it"
_TWO_WAYS = "its results go several ways, one of them to the state of {}: Spark would keep its own state for each"
_TWO_DELAYS = "its grace is not that of {}, and a query has one watermark"


def unsupported_in_query(node: Node, nodes: Iterable[Node], typed: TypedGraph) -> str | None:
    """Return the reason why a node cannot be in a query in which Spark keeps the state of some of these nodes."""
    stateful = [other for other in nodes if keeps_state(other)]
    if _is_named(node) and not any(node is keeper or node.name in keeper.parents for keeper in stateful):
        return KEPT_IN_TASKS
    if node not in stateful:
        return None
    unlike = _unlike_others(node, stateful, typed) if len(stateful) > 1 else None
    if unlike is not None:
        return unlike
    if not _states_behind(node, typed) and _ways_out(node, typed) > 1 and parting(stateful, typed) is not node:
        return "its rows go several ways and meet others there: Spark would compute them once for each"
    return None


def first_states(nodes: Iterable[Node], typed: TypedGraph) -> list[Node]:
    """Return the nodes that follow time without another such node upstream: they determine the watermark."""
    following = [node for node in nodes if follows_time(node)]
    behind = {state.name for node in following for state in _states_behind(node, typed)}
    return [node for node in following if node.name not in behind]


def delay_of_query(nodes: Iterable[Node], typed: TypedGraph) -> int:
    """Return the delay of a query's watermark in milliseconds."""
    return max(delay_of(node, typed) for node in first_states(nodes, typed))


def has_state_behind(node: Node, typed: TypedGraph) -> bool:
    """Return True if the results of a node reach another stateful node."""
    return bool(_states_behind(node, typed))


def parting(nodes: Iterable[Node], typed: TypedGraph) -> Node | None:
    """Return the node at which a query branches. Its rows are computed once, and each batch continues from there."""
    last = [node for node in nodes if keeps_state(node) and not _states_behind(node, typed)]
    several = [node for node in last if _ways_out(node, typed) > 1]
    return next((node for node in several if not _meets_others(node, typed)), None)


def _unlike_others(node: Node, stateful: Sequence[Node], typed: TypedGraph) -> str | None:
    if not all(_hands_over_what_is_final(state, typed) for state in stateful):
        return _ONE_STATE.format(len(stateful))
    return _across(node, stateful, typed) or _two_ways(node, typed) or _two_delays(node, stateful, typed)


def _across(node: Node, stateful: Sequence[Node], typed: TypedGraph) -> str | None:
    before = (other for other in stateful if node in _states_behind(other, typed))
    across = next((other for other in before if not _consists_of(node, other)), None)
    return None if across is None else _ACROSS.format(across.name)


def _two_ways(node: Node, typed: TypedGraph) -> str | None:
    behind = _states_behind(node, typed)
    return _TWO_WAYS.format(behind[0].name) if behind and _ways_to_states(node, typed) > 1 else None


def _two_delays(node: Node, stateful: Sequence[Node], typed: TypedGraph) -> str | None:
    first = first_states(stateful, typed)
    unlike = (other for other in first if node in first and delay_of(other, typed) != delay_of(node, typed))
    other = next(unlike, None)
    return None if other is None else _TWO_DELAYS.format(other.name)


def _hands_over_what_is_final(node: Node, typed: TypedGraph) -> bool:
    return isinstance(node, g.WindowedAggregate) and by_expression(node, typed) and is_final(node, typed)


def _consists_of(node: Node, before: Node) -> bool:
    """Return True if each window of a node consists of whole windows of another node."""
    if not isinstance(node, g.WindowedAggregate) or not isinstance(before, g.WindowedAggregate):
        return False
    outer = node.windows
    inner = before.windows
    if not isinstance(outer, TimeWindows) or not isinstance(inner, TimeWindows) or inner.size_ms != inner.advance_ms:
        return False
    return not outer.size_ms % inner.size_ms and not outer.advance_ms % inner.size_ms


def _states_behind(node: Node, typed: TypedGraph) -> list[Node]:
    return [other for other in typed.graph.downstream(node) if other.name != node.name and keeps_state(other)]


def _is_named(node: Node) -> bool:
    """Return True if the rows of a node are in a store that the user named."""
    materialized = getattr(node, "materialized", None)
    return materialized is not None and materialized.name is not None


def _meets_others(node: Node, typed: TypedGraph) -> bool:
    """Return True if rows of other nodes join downstream of a node; a global table needs no other rows."""
    inside = {downstream.name for downstream in typed.graph.downstream(node)}
    parents = (typed.graph[parent] for name in inside - {node.name} for parent in typed.graph[name].parents)
    return any(parent.name not in inside and not isinstance(parent, g.GlobalTableSource) for parent in parents)


def _ways_out(node: Node, typed: TypedGraph) -> int:
    """Return the number of ways from a node to sinks; each way is computed separately."""
    return isinstance(node, g.To) + sum(_ways_out(child, typed) for child in typed.graph.children(node))


def _ways_to_states(node: Node, typed: TypedGraph) -> int:
    """Return the number of ways from a node to a sink or the next stateful node."""
    children = typed.graph.children(node)
    return sum(
        1 if keeps_state(child) or isinstance(child, g.To) else _ways_to_states(child, typed) for child in children
    )

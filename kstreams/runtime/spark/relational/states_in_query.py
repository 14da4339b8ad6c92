"""Rules for operators in one query for which Spark keeps state.

Spark keeps several states in one query if all are windows that emit only final results; a window may aggregate the
results of another one. A query has one watermark, so the windows that come first must have the same grace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.windowed_query import (
    by_expression,
    delay_of,
    first_states,
    is_final,
    keeps_state,
    states_downstream,
)
from kstreams.windows import TimeWindows

KEPT_IN_TASKS = "its rows are in a named store, which only tasks keep"
_ONE_STATE = "Spark keeps only one of {} states in a query, unless all are windows with final results of expressions"
_ACROSS = "its windows do not consist of whole windows of {}, whose results it aggregates"
_SEVERAL_CHILDREN = (
    "its results branch, and one branch goes to the state of {}: Spark would keep a state for each branch"
)
_TWO_DELAYS = "its grace differs from that of {}, and a query has one watermark"


def unsupported_in_query(node: Node, nodes: Iterable[Node], typed: TypedGraph) -> str | None:
    """Return the reason why a node cannot be in a query in which Spark keeps the state of some of these nodes."""
    stateful = [other for other in nodes if keeps_state(other)]
    kept = kept_in_tasks(node, stateful)
    if kept is not None or node not in stateful:
        return kept
    return _conflict(node, stateful, typed) if len(stateful) > 1 else None


def kept_in_tasks(node: Node, nodes: Iterable[Node]) -> str | None:
    """Return a reason if the rows of a node are in a store that the user named, and no operator keeps them as state."""
    if not _is_named(node) or any(
        node is keeper or node.name in keeper.parents for keeper in nodes if keeps_state(keeper)
    ):
        return None
    return KEPT_IN_TASKS


def delay_of_query(nodes: Iterable[Node], typed: TypedGraph) -> int:
    """Return the delay of a query's watermark in milliseconds."""
    return max(delay_of(node) for node in first_states(nodes, typed))


def has_state_downstream(node: Node, typed: TypedGraph) -> bool:
    """Return True if the results of a node reach another stateful node."""
    return bool(states_downstream(node, typed))


def _conflict(node: Node, stateful: Sequence[Node], typed: TypedGraph) -> str | None:
    """Return the reason why a node cannot be in one query with the other stateful nodes."""
    if not all(_emits_final_results_only(state, typed) for state in stateful):
        return _ONE_STATE.format(len(stateful))
    return _across(node, stateful, typed) or _several_children(node, typed) or _two_delays(node, stateful, typed)


def _across(node: Node, stateful: Sequence[Node], typed: TypedGraph) -> str | None:
    before = (other for other in stateful if node in states_downstream(other, typed))
    across = next((other for other in before if not _consists_of(node, other)), None)
    return None if across is None else _ACROSS.format(across.name)


def _several_children(node: Node, typed: TypedGraph) -> str | None:
    later = states_downstream(node, typed)
    return _SEVERAL_CHILDREN.format(later[0].name) if later and _paths_to_states(node, typed) > 1 else None


def _two_delays(node: Node, stateful: Sequence[Node], typed: TypedGraph) -> str | None:
    first = first_states(stateful, typed)
    different = (other for other in first if node in first and delay_of(other) != delay_of(node))
    other = next(different, None)
    return None if other is None else _TWO_DELAYS.format(other.name)


def _emits_final_results_only(node: Node, typed: TypedGraph) -> bool:
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


def _is_named(node: Node) -> bool:
    """Return True if the rows of a node are in a store that the user named."""
    materialized = getattr(node, "materialized", None)
    return materialized is not None and materialized.name is not None


def _paths_to_states(node: Node, typed: TypedGraph) -> int:
    """Return the number of paths from a node to sinks or the next stateful nodes."""
    children = typed.graph.children(node)
    return sum(
        1 if keeps_state(child) or isinstance(child, g.To) else _paths_to_states(child, typed) for child in children
    )

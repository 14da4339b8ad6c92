"""The queries that PySpark programs compute: which operators have no text in one, or a difference. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.dsl.operator import Difference
from kstreams.expressions import Expr
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.code.execution import SinkProgram
from kstreams.runtime.spark.code.forms import differences_of
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.unsayable import UnsayableNode
from kstreams.runtime.spark.code.windowed_query import keeps_state
from kstreams.runtime.spark.relational.queries import through_reason
from kstreams.runtime.spark.settings import ACCEPT
from kstreams.serdes import Serde

_NOT_WRITTEN = "what it computes is written to no topic, and a program of PySpark ends at topics"


def sinks_of(nodes: Sequence[Node]) -> tuple[g.To, ...]:
    """Return the operators that write topics, each by a program of its own."""
    return tuple(node for node in nodes if isinstance(node, g.To))


def refusals_of(
    nodes: Sequence[Node], topology: Topology, typed: TypedGraph, *, skips_unreadable: bool
) -> dict[str, str]:
    """Return the reasons why the operators of a query have no PySpark program, by name; empty if they have one."""
    sinks = sinks_of(nodes)
    reasons: dict[str, str] = {}
    written = {before.name for sink in sinks for before in typed.graph.upstream(sink)}
    for node in nodes:
        reason = only_in_tasks(node, typed) or _kept_in_tasks(node, nodes) or through_reason(node, topology)
        if node.name not in written:
            reason = reason or _NOT_WRITTEN
        if reason is not None:
            reasons[node.name] = reason
    for name, reason in filter(None, (_unsayable(sink, typed, skips_unreadable) for sink in sinks)):
        reasons.setdefault(name, reason)
    return reasons


def calls_python(node: Node) -> bool:
    """Return True if a program calls a Python function for each row of an operator."""
    functions = (getattr(node, name, None) for name in ("predicate", "function"))
    return any(callable(function) and not isinstance(function, Expr) for function in functions)


def only_in_tasks(node: Node, typed: TypedGraph) -> str | None:
    """Return the reason why neither a program nor a DataFrame can do what a node does, whatever its type is."""
    if (calls := getattr(node, "calls", None)) is not None:
        return "async functions are called by tasks" if calls.is_async else "failed calls are repeated by tasks"
    if any(isinstance(side.kind, Serde) and side.kind.asks_registry for side in typed.types.get(node.name, ())):
        return "each record names its schema in a registry, which tasks ask: from_avro takes one schema for all"
    return None


def _unsayable(sink: g.To, typed: TypedGraph, skips_unreadable: bool) -> tuple[str, str] | None:
    """Return the operator because of which a sink has no program, and the reason."""
    try:
        SinkProgram.of(sink, typed, lambda topic: 1, skips_unreadable=skips_unreadable)
    except UnsayableNode as error:
        return error.node.name, error.reason
    return None


def _kept_in_tasks(node: Node, nodes: Sequence[Node]) -> str | None:
    """Return a reason if the rows of a node are in a store that the user named, and no operator keeps them as state."""
    materialized = getattr(node, "materialized", None)
    is_named = materialized is not None and materialized.name is not None
    keepers = (other for other in nodes if keeps_state(other))
    if not is_named or any(node is keeper or node.name in keeper.parents for keeper in keepers):
        return None
    return "its rows are in a named store, which only tasks keep"


def unaccepted(nodes: Sequence[Node], accepted: Collection[str], typed: TypedGraph) -> dict[str, str]:
    """Return the operators with differences that are not accepted, with the reason for `explain`."""
    missing = {
        node.name: [difference for difference in differences_of(node, typed) if difference.name not in accepted]
        for node in nodes
    }
    return {node: _ask(differences) for node, differences in missing.items() if differences}


def _ask(differences: Sequence[Difference]) -> str:
    names = ",".join(difference.name for difference in differences)
    return f"only with a difference as a query of PySpark: {_in_words(differences)}. {ACCEPT}={names} accepts it"


def described(node: Node, typed: TypedGraph) -> str:
    """Return how an operator runs in a program, with its differences."""
    return "; ".join(filter(None, ["in the query that --code prints", _in_words(differences_of(node, typed))]))


def _in_words(differences: Sequence[Difference]) -> str:
    return "; ".join(difference.description for difference in differences)

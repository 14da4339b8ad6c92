"""The queries that PySpark programs compute: which operators have no text in one, or a difference. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.code.differences import differences_of
from kstreams.runtime.spark.code.execution import SinkProgram
from kstreams.runtime.spark.code.program import DIFFERENCES
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.unsayable import UnsayableNode
from kstreams.runtime.spark.relational.queries import through_reason
from kstreams.runtime.spark.relational.states_in_query import kept_in_tasks
from kstreams.runtime.spark.settings import ACCEPT, ACCEPTABLE

_NOT_WRITTEN = "what it computes is written to no topic, and a program of PySpark ends at topics"


def sinks_of(nodes: Sequence[Node]) -> tuple[g.To, ...]:
    """Return the operators that write topics, each by a program of its own."""
    return tuple(node for node in nodes if isinstance(node, g.To))


def refusals_of(nodes: Sequence[Node], topology: Topology, typed: TypedGraph) -> dict[str, str]:
    """Return the reasons why the operators of a query have no PySpark program, by name; empty if they have one."""
    sinks = sinks_of(nodes)
    reasons = dict(filter(None, (_unsayable(sink, typed) for sink in sinks)))
    written = {before.name for sink in sinks for before in typed.graph.upstream(sink)}
    for node in nodes:
        reason = kept_in_tasks(node, nodes) or through_reason(node, topology)
        if node.name not in written:
            reason = reason or _NOT_WRITTEN
        if reason is not None:
            reasons.setdefault(node.name, reason)
    return reasons


def _unsayable(sink: g.To, typed: TypedGraph) -> tuple[str, str] | None:
    """Return the operator because of which a sink has no program, and the reason."""
    try:
        SinkProgram.of(sink, typed, lambda topic: 1)
    except UnsayableNode as error:
        return error.node.name, error.reason
    return None


def unaccepted(nodes: Sequence[Node], accepted: Collection[str], typed: TypedGraph) -> dict[str, str]:
    """Return the operators with differences that are not accepted, with the reason for `explain`."""
    missing = {node.name: [name for name in differences_of(node, typed) if name not in accepted] for node in nodes}
    return {node: _ask(names) for node, names in missing.items() if names}


def _ask(names: Sequence[str]) -> str:
    differences = "; ".join(ACCEPTABLE[name] for name in names)
    return f"only with a difference as a query of PySpark: {differences}. {ACCEPT}={','.join(names)} accepts it"


def described(node: Node, typed: TypedGraph) -> str:
    """Return how an operator runs in a program, with its differences."""
    names = differences_of(node, typed)
    text = DIFFERENCES.get(type(node)) or "; ".join(ACCEPTABLE[name] for name in names)
    return f"in the query that --code prints; {text}" if names else "in the query that --code prints"


Programs = Mapping[int, tuple[g.To, ...]]
"""The sinks of each query that PySpark programs compute, by the sub-topology that writes to topics."""

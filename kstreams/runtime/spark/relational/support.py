"""Whether an operator can take the relational path, as its `SparkForm` says."""

from __future__ import annotations

from kstreams.dsl.graph import Node
from kstreams.dsl.operator import operators
from kstreams.runtime.spark.relational import rules  # noqa: F401 (registers the forms of all operators)
from kstreams.runtime.spark.relational.header_reads import unreadable_record
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.serdes import Serde


def unsupported_reason(node: Node, typed: TypedGraph) -> str | None:
    """Why a node cannot take the relational path; None when it can."""
    form = operators.of(node).spark
    if form.lower is None:
        return form.reason
    if getattr(node, "calls", None) is not None:
        return "async functions are called by tasks"
    if any(isinstance(side.kind, Serde) and side.kind.asks_registry for side in typed.types.get(node.name, ())):
        return "tasks ask the schema registry"
    reason = unreadable_record(node, typed)
    return reason if reason is not None or form.check is None else form.check(node, typed)


def difference_of(node: Node) -> str | None:
    """What of the final results of a node is not exact on the relational path."""
    return operators.of(node).spark.difference

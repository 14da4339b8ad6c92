"""`differences_of`: how an operator differs in a PySpark program. Importing this registers the forms of operators."""

from __future__ import annotations

from kstreams.dsl import rules  # noqa: F401 (registers the operators)
from kstreams.dsl.graph import Node
from kstreams.dsl.operator import Difference, operators
from kstreams.runtime.spark.code import aggregate_rules, join_rules, stateless_rules, tasks_only
from kstreams.runtime.spark.code.typed_graph import TypedGraph

for family in (stateless_rules, aggregate_rules, join_rules, tasks_only):
    for node_type, form in family.FORMS.items():
        operators.set_spark(node_type, form)


def differences_of(node: Node, typed: TypedGraph) -> tuple[Difference, ...]:
    """Return the differences that a node has in a program."""
    return tuple(difference for difference in operators.of(node).spark.differences if difference.applies(node, typed))

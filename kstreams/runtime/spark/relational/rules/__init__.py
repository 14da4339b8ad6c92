"""The rules by which operators run on Spark, with their checks; importing this package registers the rules."""

from kstreams.dsl import rules  # noqa: F401 (registers the operators)
from kstreams.dsl.operator import operators
from kstreams.runtime.spark.relational.rules import (
    global_joins,
    joins,
    stateless,
    tables,
    tasks_only,
    windowed,
)

for family in (stateless, windowed, joins, global_joins, tables, tasks_only):
    for node_type, form in family.FORMS.items():
        operators.set_spark(node_type, form)

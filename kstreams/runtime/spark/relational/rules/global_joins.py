"""Joins of a stream with a global table: Spark broadcasts the rows that the table has when a step runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.expressions import Expr
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.codecs import encoded
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import unbuildable, unknown_type, unreadable, unreadable_join
from kstreams.runtime.spark.relational.rules.function_calls import Argument, FunctionCall
from kstreams.runtime.spark.relational.rules.joins import with_joined
from kstreams.runtime.spark.relational.rules.tasks_only import UNCOUNTED
from kstreams.serdes import serde_of

if TYPE_CHECKING:
    from pyspark.sql import Column


def global_table_join(node: g.GlobalTableJoin, build: RelationalLowering) -> Frame:
    """Join each record with the row of the key that its selector returns."""
    stream = build.parent(node)
    table_types = build.input_types(node, 1)
    source = build.graph[node.parents[1]]
    assert isinstance(source, g.GlobalTableSource)
    stream, selected = _selected(node, build, stream)
    has_match = F.col("_selected").isNotNull() | F.lit(node.left_outer)
    selected_rows = replace(stream, rows=stream.rows.withColumn("_selected", selected)).where(
        F.col("value").isNotNull() & has_match
    )
    table = build.rows_of(source).select(F.col("key").alias("_selected"), F.col("value").alias("_table_value"))
    pairs = selected_rows.rows.join(F.broadcast(table), "_selected", "left" if node.left_outer else "inner")
    table_value = Argument.of(serde_of(table_types.value.kind), F.col("_table_value"))
    values = Argument.of_side(stream, "key"), Argument.of_side(stream, "value"), table_value
    joined = with_joined(replace(selected_rows, rows=pairs), node, values, build)
    return replace(joined, rows=joined.rows.drop("_selected", "_table_value"))


def _selected(node: g.GlobalTableJoin, build: RelationalLowering, stream: Frame) -> tuple[Frame, Column]:
    """Return the rows, and the column of the serialized keys of the table that the selector returns."""
    serde = serde_of(build.input_types(node, 1).key.kind)
    selector = node.key_selector
    if not isinstance(selector, Expr):
        return stream, FunctionCall.on_rows(node, selector, stream, True, build).serialized(serde)
    stream = stream.with_computed({"_key": selector})
    return stream, encoded(serde, F.col("_key"), dict(stream.rows.dtypes)["_key"])


def check_global_table_join(node: g.GlobalTableJoin, typed: TypedGraph) -> str | None:
    if node.with_mapped_key:
        return "its joiner takes the mapped key"
    return (
        unbuildable(node.key_selector)
        or unreadable(node.key_selector, typed.of_parent(node))
        or unknown_type(typed.of_parent(node, 1).key, "table's key")
        or unreadable_join(node, typed)
    )


BROADCAST = "each step reads the whole table to the end of its topic, not as records arrive"

FORMS: dict[type[g.Node], SparkForm] = dict.fromkeys(
    (g.GlobalTableJoin, g.LeftGlobalTableJoin),
    SparkForm(check=check_global_table_join, lower=global_table_join, difference=f"{BROADCAST}; {UNCOUNTED}"),
)

"""Inner joins of two streams within a window: Spark's stream-stream join over event time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.expressions import Expr
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame, arrow_call
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import unknown_type
from kstreams.runtime.spark.relational.rules.reasons import LATE, OUT_OF_ORDER
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.serdes import Serde, serde_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COLUMNS = ("key", "value", "timestamp", "headers", "origin", "offset", EVENT_TIME)


def stream_join(node: g.StreamJoin, build: RelationalLowering) -> Frame:
    left, right = build.parent(node, 0), build.parent(node, 1)
    pairs = _side(left, "left").join(_side(right, "right"), _within(node))
    result = serde_of(build.types(node).value.kind)
    values = [F.col("left_value"), F.col("right_value"), F.col("left_origin"), F.col("left_offset")]
    reads: tuple[Serde[Any], ...] = (left.value, right.value)
    if node.with_key:
        values, reads = [F.col("left_key"), *values], (left.key, *reads)
    joined = arrow_call("binary", _joined, (build.function(node, node.joiner, reads), result), *values)
    return Frame(_rows(pairs, joined), left.key, result)


def _side(frame: Frame, side: str) -> DataFrame:
    rows = frame.rows.where(F.col("key").isNotNull() & F.col("value").isNotNull())
    return rows.select(*(F.col(name).alias(f"{side}_{name}") for name in COLUMNS))


def _within(node: g.StreamJoin) -> Column:
    """Whether the right row is at most `before` the left one or `after` it, both ends included."""
    before, after = (
        F.expr(f"make_dt_interval(0, 0, 0, {ms / 1000})") for ms in (node.windows.before_ms, node.windows.after_ms)
    )
    left, right = F.col(f"left_{EVENT_TIME}"), F.col(f"right_{EVENT_TIME}")
    return (F.col("left_key") == F.col("right_key")) & (right >= left - before) & (right <= left + after)


def _rows(pairs: DataFrame, joined: Column) -> DataFrame:
    later = F.col("left_timestamp") >= F.col("right_timestamp")
    return pairs.select(
        F.col("left_origin").alias("origin"),
        F.greatest("left_offset", "right_offset").alias("offset"),
        F.greatest("left_timestamp", "right_timestamp").alias("timestamp"),
        F.col("left_key").alias("key"),
        joined.alias("value"),
        F.when(later, F.col("left_headers")).otherwise(F.col("right_headers")).alias("headers"),
        F.lit("?").alias("topic"),
    )


def _joined(joiner: UserFunction, result: Serde[Any], *columns: pa.Array) -> pa.Array:
    return result.encode_rows(joiner.results(*columns))


def check_stream_join(node: g.StreamJoin, typed: TypedGraph) -> str | None:
    if isinstance(node.joiner, Expr):
        return "its joiner is an expression over two frames"
    made, left, right = typed.types[node.name], typed.of_parent(node, 0), typed.of_parent(node, 1)
    return (
        unknown_type(left.key, "key")
        or unknown_type(left.value.or_declared(node.value, node), "left value")
        or unknown_type(right.value.or_declared(node.other_value, node), "right value")
        or unknown_type(made.value, "result")
    )


FORMS: dict[type[g.Node], SparkForm] = {
    g.StreamJoin: SparkForm(
        check=check_stream_join,
        lower=stream_join,
        difference=LATE.format(done="joined") + "; a record at the epoch itself is dropped",
        task_difference=OUT_OF_ORDER,
    )
}

"""Joins of two streams within a window: Spark's stream-stream join over event time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.runtime.spark.relational.arrow_call import arrow_call
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import unreadable_join
from kstreams.runtime.spark.relational.rules.reasons import LATE, OUT_OF_ORDER
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.serdes import Serde

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WindowJoin: TypeAlias = g.StreamJoin | g.SelfJoin

COLUMNS = ("key", "value", "timestamp", "headers", "origin", "offset", EVENT_TIME)


def stream_join(node: WindowJoin, build: RelationalLowering) -> Frame:
    """An inner join: both sides need a key and a value."""
    left, right = _with_both(build.parent(node, 0), "left"), _with_both(build.parent(node, 1), "right")
    pairs = left.join(right, (F.col("left_key") == F.col("right_key")) & _within(node))
    return _joined_pairs(node, build, pairs)


def outer_stream_join(node: g.OuterStreamJoin, build: RelationalLowering) -> Frame:
    """A left or full outer join: Spark gives rows without a partner when the watermark has passed their window."""
    left, right = _with_value(build.parent(node, 0), "left"), _with_value(build.parent(node, 1), "right")
    meet = (F.col("left_place") == F.col("right_place")) & _within(node)
    return _joined_pairs(node, build, left.join(right, meet, "full_outer" if node.right_outer else "left_outer"))


def _joined_pairs(node: WindowJoin, build: RelationalLowering, pairs: DataFrame) -> Frame:
    left, right = build.parent(node, 0), build.parent(node, 1)
    values = F.col("left_value"), F.col("right_value"), _either("origin"), _either("offset")
    joined = joined_values(node, build, (left.key, left.value, right.value), _either("key"), *values)
    return Frame(_rows(pairs, joined), left.key, build.serde(node, "value"))


def joined_values(
    node: Any, build: RelationalLowering, reads: tuple[Serde[Any], ...], key: Column, *values: Column
) -> Column:
    """What the joiner of a node gives, serialized.

    Parameters
    ----------
    reads : tuple of Serde
        Of key, left and right value.
    *values : Column
        Left and right value, and where the row comes from.
    """
    joiner, with_key = build.joiner(node)
    taken, reads = ((key, *values), reads) if with_key else (values, reads[1:])
    given = build.function(node, joiner, reads), build.serde(node, "value")
    return arrow_call("binary", _joined, given, *taken)


def _with_both(frame: Frame, side: str) -> DataFrame:
    return _named(frame.rows.where(F.col("key").isNotNull() & F.col("value").isNotNull()), side)


def _with_value(frame: Frame, side: str) -> DataFrame:
    """The rows with a value; their keys may be null, and such rows meet none."""
    rows = _named(frame.where(F.col("value").isNotNull()).rows, side)
    # A place is never null, or Spark would drop null keys, of which one is the row that ends the input.
    key = F.col(f"{side}_key")
    return rows.withColumn(f"{side}_place", F.struct(key.alias("key"), F.when(key.isNull(), side).alias("alone")))


def _named(rows: DataFrame, side: str) -> DataFrame:
    return rows.select(*(F.col(name).alias(f"{side}_{name}") for name in COLUMNS))


def _either(name: str) -> Column:
    """What the left row says or, where there is none, the right one."""
    return F.coalesce(f"left_{name}", f"right_{name}")


def _within(node: WindowJoin) -> Column:
    """Whether the right row is at most `before` the left one or `after` it, both ends included."""
    # Literals: Spark looks for them to know how long rows wait.
    before, after = (F.expr(f"INTERVAL {ms} MILLISECONDS") for ms in (node.windows.before_ms, node.windows.after_ms))
    left, right = F.col(f"left_{EVENT_TIME}"), F.col(f"right_{EVENT_TIME}")
    return (right >= left - before) & (right <= left + after)


def _rows(pairs: DataFrame, joined: Column) -> DataFrame:
    later = F.col("right_timestamp").isNull() | (F.col("left_timestamp") >= F.col("right_timestamp"))
    return pairs.select(
        _either("origin").alias("origin"),
        F.greatest("left_offset", "right_offset").alias("offset"),
        F.greatest("left_timestamp", "right_timestamp").alias("timestamp"),
        _either("key").alias("key"),
        joined.alias("value"),
        F.when(later, F.col("left_headers")).otherwise(F.col("right_headers")).alias("headers"),
        F.lit("?").alias("topic"),
    )


def _joined(joiner: UserFunction, result: Serde[Any], *columns: pa.Array) -> pa.Array:
    return result.encode_rows(joiner.results(*columns))


JOINED = LATE.format(done="joined") + "; a record at the epoch itself is dropped"

FORMS: dict[type[g.Node], SparkForm] = {
    g.StreamJoin: SparkForm(check=unreadable_join, lower=stream_join, difference=JOINED, task_difference=OUT_OF_ORDER),
    g.OuterStreamJoin: SparkForm(
        check=unreadable_join,
        lower=outer_stream_join,
        difference=f"{JOINED}; a record that waits for a partner does so until its grace is over, even if it came late "
        "or the other topic is idle",
        task_difference=OUT_OF_ORDER,
    ),
    g.SelfJoin: SparkForm(check=unreadable_join, lower=stream_join, difference=JOINED),
    g.OuterSelfJoin: SparkForm(check=unreadable_join, lower=stream_join, difference=JOINED),  # each meets itself
}

"""Joins of two streams within a window: Spark's stream-stream join over event time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.lowering import Join, RelationalLowering
from kstreams.runtime.spark.relational.readable import unreadable_join
from kstreams.runtime.spark.relational.rules.function_calls import Argument, FunctionCall, with_result
from kstreams.runtime.spark.relational.rules.tasks_only import LATE, OUT_OF_ORDER
from kstreams.runtime.spark.relational.user_function import RECORD_ID

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WindowJoin: TypeAlias = g.StreamJoin | g.SelfJoin
ColumnOfSide: TypeAlias = "Callable[[str], Column]"
"""Returns, by name, a column of the side whose origin the joined row has."""

SIDES = ("left", "right")
COLUMNS = ("key", "value", "headers", "origin", "offset", EVENT_TIME)
_RECORD_ID = ("origin", "_offset")


def stream_join(node: WindowJoin, build: RelationalLowering) -> Frame:
    """Return the inner join of two streams; both sides need a key and a value."""
    is_complete = F.col("key").isNotNull() & F.col("value").isNotNull()
    frames = (build.parent(node, index) for index in range(len(SIDES)))
    complete = (replace(frame, rows=frame.rows.where(is_complete)) for frame in frames)
    left, right = map(_prefixed, complete, SIDES)
    return _joined(left.join(right, _equal("key") & _within(node)), _left, node, build)


def outer_stream_join(node: g.OuterStreamJoin, build: RelationalLowering) -> Frame:
    """Return the left or full outer join. Spark emits unmatched rows when the watermark has passed their window."""
    frames = [build.parent(node, index).where(F.col("value").isNotNull()) for index in range(len(SIDES))]
    if not node.right_outer:
        left = _prefixed(frames[0], "left")
        right = _prefixed(frames[1].where(F.col("key").isNotNull()), "right")
        # Spark filters rows by a nullable join key before its watermark has seen them, so this key is never null.
        right = right.withColumn("right_key", F.coalesce("right_key", F.lit(b"")))
        return _joined(left.join(right, _equal("key") & _within(node), "left_outer"), _left, node, build)
    left, right = (_with_join_key(_prefixed(frame, side), side) for frame, side in zip(frames, SIDES, strict=True))
    return _joined(left.join(right, _equal("join_key") & _within(node), "full_outer"), _either, node, build)


def with_joined(
    frame: Frame,
    node: Join,
    values: Sequence[Argument],
    build: RelationalLowering,
    record_id: Sequence[str] = RECORD_ID,
) -> Frame:
    """Return the rows with the joiner's result of key, left and right value."""
    joiner, with_key = build.joiner(node)
    call = FunctionCall.of(node, joiner, values if with_key else values[1:], build, record_id)
    return with_result(frame, "value", build.serde(node, "value"), call)


def _joined(pairs: DataFrame, of_origin: ColumnOfSide, node: WindowJoin, build: RelationalLowering) -> Frame:
    parents = build.parent(node, 0), build.parent(node, 1)
    frame = Frame(_rows(pairs, of_origin), parents[0].key, build.serde(node, "value"))
    values = [
        Argument(F.col(f"{side}_value"), _value(parent).reads) for side, parent in zip(SIDES, parents, strict=True)
    ]
    joined = with_joined(frame, node, [Argument.of_side(frame, "key"), *values], build, _RECORD_ID)
    return replace(joined, rows=joined.rows.drop("_offset", "left_value", "right_value"))


def _with_join_key(rows: DataFrame, side: str) -> DataFrame:
    """Return the rows of a side with a join key in which a null key equals no other key."""
    key = F.col(f"{side}_key")
    only_this_side = F.when(key.isNull(), side).alias("only_this_side")
    return rows.withColumn(f"{side}_join_key", F.struct(key.alias("key"), only_this_side))


def _prefixed(frame: Frame, side: str) -> DataFrame:
    """Return the columns of a side, with the side as the prefix of their names."""
    columns = {name: F.col(name) for name in COLUMNS} | {"value": _value(frame).column}
    return frame.rows.select(*(column.alias(f"{side}_{name}") for name, column in columns.items()))


def _value(frame: Frame) -> Argument:
    """Return the values as the joiner reads them. Spark's state holds typed values as they are decoded here, once."""
    return Argument.of_side(frame, "value")


def _left(name: str) -> Column:
    return F.col(f"left_{name}")


def _either(name: str) -> Column:
    """Return the value of the left row, or of the right row if there is no left one."""
    return F.coalesce(f"left_{name}", f"right_{name}")


def _equal(name: str) -> Column:
    return F.col(f"left_{name}") == F.col(f"right_{name}")


def _within(node: WindowJoin) -> Column:
    """Return the condition that the right row is at most `before` earlier or `after` later than the left row."""
    # Spark derives from these literals how long rows wait for a match.
    before, after = (F.expr(f"INTERVAL {ms} MILLISECONDS") for ms in (node.windows.before_ms, node.windows.after_ms))
    left = F.col(f"left_{EVENT_TIME}")
    right = F.col(f"right_{EVENT_TIME}")
    return (right >= left - before) & (right <= left + after)


def _rows(pairs: DataFrame, of_origin: ColumnOfSide) -> DataFrame:
    """Return the columns of a joined stream, except for the value, which the joiner computes from both values."""
    left_time, right_time = (F.unix_millis(F.col(f"{side}_{EVENT_TIME}")) for side in SIDES)
    left_is_later = right_time.isNull() | (left_time >= right_time)
    return pairs.select(
        of_origin("origin").alias("origin"),
        F.greatest("left_offset", "right_offset").alias("offset"),
        F.greatest(left_time, right_time).alias("timestamp"),
        of_origin("key").alias("key"),
        F.when(left_is_later, F.col("left_headers")).otherwise(F.col("right_headers")).alias("headers"),
        F.lit("?").alias("topic"),
        of_origin("offset").alias("_offset"),
        "left_value",
        "right_value",
    )


JOINED = LATE.format(done="joined") + (
    "; a record at the epoch itself is dropped; a pair has the headers of the later record"
)

FORMS: dict[type[g.Node], SparkForm] = {
    g.StreamJoin: SparkForm(check=unreadable_join, lower=stream_join, difference=JOINED, task_difference=OUT_OF_ORDER),
    g.OuterStreamJoin: SparkForm(
        check=unreadable_join,
        lower=outer_stream_join,
        difference=f"{JOINED}; an unmatched record waits until its grace is over, even if it was late or the other "
        "topic is idle, and has its own headers",
        task_difference=OUT_OF_ORDER,
    ),
    g.SelfJoin: SparkForm(check=unreadable_join, lower=stream_join, difference=JOINED),
    # Each record matches itself, so the inner join suffices.
    g.OuterSelfJoin: SparkForm(check=unreadable_join, lower=stream_join, difference=JOINED),
}

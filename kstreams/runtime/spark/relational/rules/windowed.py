"""Final results of windowed aggregations by expression: windows, watermark and append mode of Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from kstreams.dsl import graph as g
from kstreams.expressions import Aggregation, Expr, Operation
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame, arrow_call
from kstreams.runtime.spark.relational.lowering import Lowering, relational
from kstreams.runtime.spark.relational.obstacles import slots_of
from kstreams.serdes import Serde
from kstreams.windows import TimeWindows

_AGGREGATES: dict[Operation, Callable[[Column], Column]] = {
    Operation.ROWS: F.count,
    Operation.COUNT: F.count,
    Operation.SUM: F.sum,
    Operation.MIN: F.min,
    Operation.MAX: F.max,
}


@relational.rule(g.WindowedAggregate)
def windowed_aggregate(node: g.WindowedAggregate, build: Lowering) -> Frame:
    windows, aggregation = node.windows, slots_of(node, build.facts.of_parent(node))
    assert isinstance(windows, TimeWindows)
    read = {f"_slot_{i}": slot.inputs[0] for i, slot in enumerate(aggregation.slots) if slot.inputs}
    frame = build.parent(node).with_computed(read)
    span = F.window(EVENT_TIME, f"{windows.size_ms} milliseconds", f"{windows.advance_ms} milliseconds")
    slots = [_slot(i, slot).alias(f"_slot_{i}") for i, slot in enumerate(aggregation.slots)]
    grouped = frame.rows.groupBy(span.alias("_window"), "key").agg(*slots, F.max("timestamp").alias("timestamp"))
    # Told of keys alone, Spark would drop null keys before the watermark has seen the row that ends the input.
    keyed = F.col("key").isNotNull() | (F.col("timestamp") < 0)
    since_epoch = F.col("_window.start") >= F.timestamp_millis(F.lit(0))
    return _finished(node, build, grouped.where(keyed).where(since_epoch), aggregation)


@relational.rule(g.Suppress, g.ToStream)
def pass_on(node: g.Suppress | g.ToStream, build: Lowering) -> Frame:
    """Only final results come this way."""
    return build.parent(node)


def _slot(number: int, slot: Expr) -> Column:
    return _AGGREGATES[slot.operation](F.col(f"_slot_{number}") if slot.inputs else F.lit(1))


def _finished(node: g.WindowedAggregate, build: Lowering, grouped: Any, aggregation: Aggregation) -> Frame:
    """Keys and values as bytes, made of the windows and of what was aggregated."""
    key, value = build.serde(node, "key"), build.serde(node, "value")
    start = F.unix_millis(F.col("_window.start"))
    slots = [F.col(f"_slot_{i}") for i in range(len(aggregation.slots))]
    rows = grouped.select(
        F.lit(0).cast("bigint").alias("origin"),
        start.alias("offset"),
        "timestamp",
        arrow_call("binary", _windowed_key, (), F.col("key"), start).alias("key"),
        arrow_call("binary", _result, (aggregation, value), *slots).alias("value"),
        F.lit(None).cast("array<struct<name: string, value: binary>>").alias("headers"),
        F.lit("?").alias("topic"),
    )
    return Frame(rows, key, value)


def _windowed_key(keys: pa.Array, starts: pa.Array) -> pa.Array:
    """The bytes of a key, then the start of its window: as `TimeWindowedSerde` writes them."""
    ends = [start.to_bytes(8, "big", signed=True) for start in starts.to_pylist()]
    return pa.array([key + end for key, end in zip(keys.to_pylist(), ends, strict=True)], pa.binary())


def _result(aggregation: Aggregation, serde: Serde[Any], *slots: pa.Array) -> pa.Array:
    if aggregation.is_count:
        return serde.encode_rows(slots[0].to_pylist())
    initial = aggregation.initial()
    states = zip(*(slot.to_pylist() for slot in slots), strict=True)
    filled = (tuple(_of(kept, empty) for kept, empty in zip(state, initial, strict=True)) for state in states)
    return serde.encode_rows([aggregation.result(state) for state in filled])


def _of(kept: Any, empty: Any) -> Any:
    return empty if kept is None else kept

"""`relational_rows`: what a sub-topology on the relational path writes, as rows for the sink."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kstreams.log.partitioning import partitions_of
from kstreams.runtime.spark.exchange.blocks import CONTROL_TOPIC
from kstreams.runtime.spark.exchange.reports import one_dropped
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.frame import arrow_call
from kstreams.runtime.spark.relational.lowering import Output, RelationalLowering
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.relational.user_function import origin_column, partition_of_origin
from kstreams.serdes import SessionWindowedSerde, TimeWindowedSerde

_WINDOW_BYTES: dict[type, int] = {TimeWindowedSerde: 8, SessionWindowedSerde: 16}
"""How many bytes stand behind the key inside a windowed one."""


def relational_rows(
    plan: PathPlan, number: int, source: Callable[[list[str]], DataFrame], program: Program
) -> DataFrame:
    """What a sub-topology on the relational path writes, as `OUT_SCHEMA`.

    Parameters
    ----------
    source : callable
        Gives the records of some topics, as `OUT_SCHEMA` but for the origin.
    """
    assert plan.facts is not None
    build = RelationalLowering(
        plan.facts,
        lambda topics: source(topics).withColumn("origin", origin_column(number)),
        {**program.topic_names, **program.feeds},
        program.inputs[number],
    )
    written = [_rows(output, program) for output in build.run(plan.nodes[number])]
    return reduce(lambda left, right: left.union(right), written)


def _rows(output: Output, program: Program) -> DataFrame:
    count = program.partitions.get(output.topic, program.default_partitions)
    key, serde = F.col("key"), output.frame.key
    if type(serde) in _WINDOW_BYTES:  # windows of one key stay together: only the key inside decides
        key = key.substr(F.lit(1), F.length(key) - _WINDOW_BYTES[type(serde)])
    partition = arrow_call("int", _placed, (count,), key, partition_of_origin())
    topic, value = F.lit(output.topic), F.col("value")
    if output.drops is not None:
        has_key, report = F.col("key").isNotNull(), bytearray(one_dropped(output.drops, "null key"))
        topic, value = F.when(has_key, topic).otherwise(CONTROL_TOPIC), F.when(has_key, value).otherwise(F.lit(report))
    return output.frame.rows.select(
        topic.alias("topic"),
        partition.alias("partition"),
        *("offset", "timestamp", "key"),
        value.alias("value"),
        *("headers", "origin"),
        F.col("timestamp").alias("stream_time"),
    )


def _placed(count: int, keys: pa.Array, own: pa.Array) -> pa.Array:
    """Where each row goes: by its key; without one, to the partition that it came from, as a task would put it."""
    chosen = partitions_of(keys, count)
    return pa.array(np.where(chosen < 0, own.to_numpy() % count, chosen), pa.int32())

"""`relational_rows`: what a sub-topology on the relational path writes, as rows for the sink."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kstreams.runtime.spark.exchange.blocks import CONTROL_TOPIC
from kstreams.runtime.spark.exchange.reports import one_dropped
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.lowering import Output, RelationalLowering
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.relational.user_function import origin_column, partition_of_origin


def relational_rows(
    plan: PathPlan,
    number: int,
    source: Callable[[list[str]], DataFrame],
    whole: Callable[[str], DataFrame],
    program: Program,
) -> DataFrame:
    """What a sub-topology on the relational path writes, as `OUT_SCHEMA`.

    The partition is still the one that each row came from.

    Parameters
    ----------
    source : callable
        Gives the records of some topics, as `OUT_SCHEMA` but for the origin.
    whole : callable
        Gives all records that the topic of a global table holds when a plan runs.
    """
    assert plan.facts is not None
    build = RelationalLowering(
        plan.facts,
        lambda topics: source(topics).withColumn("origin", origin_column(number, topics)),
        {**program.topic_names, **program.feeds},
        program.inputs[number],
        whole,
    )
    written = [_rows(output) for output in build.run(plan.nodes[number])]
    return reduce(lambda left, right: left.union(right), written)


def _rows(output: Output) -> DataFrame:
    topic, value = F.lit(output.topic), F.col("value")
    if output.drops is not None:
        has_key, report = F.col("key").isNotNull(), bytearray(one_dropped(output.drops, "null key"))
        topic, value = F.when(has_key, topic).otherwise(CONTROL_TOPIC), F.when(has_key, value).otherwise(F.lit(report))
    return output.frame.rows.select(
        topic.alias("topic"),
        partition_of_origin().cast("int").alias("partition"),
        *("offset", "timestamp", "key"),
        value.alias("value"),
        *("headers", "origin"),
        F.col("timestamp").alias("stream_time"),
    )

"""`relational_rows`: the rows that a relational sub-topology writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kstreams.runtime.spark.exchange.blocks import CONTROL_TOPIC
from kstreams.runtime.spark.exchange.reports import one_dropped
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.lowering import Output, RelationalLowering
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.relational.states_in_query import parting
from kstreams.runtime.spark.relational.user_function import origin_column, partition_of_origin

Read = Callable[[list[str]], DataFrame]
"""Returns the records of some topics, in the columns of `OUT_SCHEMA` without the origin."""

ReadWhole = Callable[[str], DataFrame]
"""Returns all records that the topic of a global table holds when a plan runs."""

Keep = Callable[[DataFrame], DataFrame]

_PARTED = "?"
"""The topic of rows that several branches of the query still process."""


def relational_rows(plan: PathPlan, number: int, source: Read, whole: ReadWhole, program: Program) -> DataFrame:
    """Return the rows that a relational sub-topology writes, as `OUT_SCHEMA`.

    The partition is still the one that each row came from.
    """
    return _united(_lowering(plan, number, source, whole, program).run(plan.nodes[number]))


def rows_of_query(plan: PathPlan, number: int, source: Read, whole: ReadWhole, program: Program) -> DataFrame:
    """Return the rows of a stateful query; a query that branches ends at the node before its branches.

    `rows_behind` continues after this node, batch by batch, so that there is only one copy of the state.
    """
    facts = plan.facts
    nodes = plan.nodes[number]
    part = parting(nodes, facts)
    if part is None:
        return relational_rows(plan, number, source, whole, program)
    behind = set(facts.graph.downstream(part)) - {part}
    build = _lowering(plan, number, source, whole, program)
    build.run([node for node in nodes if node not in behind])
    build.end_at(part, _PARTED)
    return _united(build.outputs)


def rows_behind(
    plan: PathPlan, number: int, batch: DataFrame, whole: ReadWhole, program: Program, keep: Keep
) -> DataFrame:
    """Return the rows that a query writes, from a batch of `rows_of_query`.

    Parameters
    ----------
    keep : callable
        Called with a frame that is read several times.
    """
    facts = plan.facts
    nodes = plan.nodes[number]
    part = parting(nodes, facts)
    if part is None:
        return batch
    behind = set(facts.graph.downstream(part)) - {part}
    batch = keep(batch)
    build = _lowering(plan, number, lambda topics: batch, whole, program)
    build.begin_at(part, batch.where(F.col("topic") == _PARTED))
    return _united(build.run([node for node in nodes if node in behind])).union(batch.where(F.col("topic") != _PARTED))


def _lowering(plan: PathPlan, number: int, source: Read, whole: ReadWhole, program: Program) -> RelationalLowering:
    return RelationalLowering(
        plan.facts,
        lambda topics: source(topics).withColumn("origin", origin_column(number, topics)),
        {**program.topic_names, **program.feeds},
        [topic for member in sorted(plan.members(number)) for topic in program.inputs[member]],
        whole,
    )


def _united(outputs: Sequence[Output]) -> DataFrame:
    return reduce(lambda rows, other_rows: rows.union(other_rows), map(_rows, outputs))


def _rows(output: Output) -> DataFrame:
    topic = F.lit(output.topic)
    value = F.col("value")
    if output.drops is not None:
        has_key = F.col("key").isNotNull()
        report = bytearray(one_dropped(output.drops, "null key"))
        topic = F.when(has_key, topic).otherwise(CONTROL_TOPIC)
        value = F.when(has_key, value).otherwise(F.lit(report))
    return output.frame.rows.select(
        topic.alias("topic"),
        partition_of_origin().cast("int").alias("partition"),
        "offset",
        "timestamp",
        "key",
        value.alias("value"),
        "headers",
        "origin",
        F.col("timestamp").alias("stream_time"),
    )

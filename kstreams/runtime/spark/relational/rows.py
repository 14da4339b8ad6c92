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
from kstreams.runtime.spark.relational.states_in_query import branching_node
from kstreams.runtime.spark.relational.user_function import origin_column, partition_of_origin

Read = Callable[[list[str]], DataFrame]
"""Returns the records of some topics, in the columns of `OUT_SCHEMA` without the origin."""

ReadAll = Callable[[str], DataFrame]
"""Returns all records that the topic of a global table holds when a plan runs."""

Persist = Callable[[DataFrame], DataFrame]
"""Persists a frame that is read several times."""

_BEFORE_BRANCHES = "?"
"""The topic of rows that the branches of the query still have to process."""


def relational_rows(plan: PathPlan, number: int, source: Read, all_records: ReadAll, program: Program) -> DataFrame:
    """Return the rows that a relational sub-topology writes, as `OUT_SCHEMA`.

    The column `partition` has the partition that each row was read from.
    """
    return _united(_lowering(plan, number, source, all_records, program).run(plan.nodes[number]))


def rows_of_query(plan: PathPlan, number: int, source: Read, all_records: ReadAll, program: Program) -> DataFrame:
    """Return the rows of a stateful query; a query that branches ends at the node before its branches.

    `rows_of_branches` continues after this node, batch by batch, so that there is only one copy of the state.
    """
    typed = plan.typed
    nodes = plan.nodes[number]
    last = branching_node(nodes, typed)
    if last is None:
        return relational_rows(plan, number, source, all_records, program)
    branches = set(typed.graph.downstream(last)) - {last}
    build = _lowering(plan, number, source, all_records, program)
    build.run([node for node in nodes if node not in branches])
    build.end_at(last, _BEFORE_BRANCHES)
    return _united(build.outputs)


def rows_of_branches(
    plan: PathPlan, number: int, batch: DataFrame, all_records: ReadAll, program: Program, persist: Persist
) -> DataFrame:
    """Return the rows that a query writes, from a batch of `rows_of_query`."""
    typed = plan.typed
    nodes = plan.nodes[number]
    last = branching_node(nodes, typed)
    if last is None:
        return batch
    branches = set(typed.graph.downstream(last)) - {last}
    batch = persist(batch)
    build = _lowering(plan, number, lambda topics: batch, all_records, program)
    build.begin_at(last, batch.where(F.col("topic") == _BEFORE_BRANCHES))
    rows = _united(build.run([node for node in nodes if node in branches]))
    return rows.union(batch.where(F.col("topic") != _BEFORE_BRANCHES))


def _lowering(plan: PathPlan, number: int, source: Read, all_records: ReadAll, program: Program) -> RelationalLowering:
    return RelationalLowering(
        plan.typed,
        lambda topics: source(topics).withColumn("origin", origin_column(number, topics)),
        {**program.topic_names, **program.feeds},
        [topic for member in sorted(plan.members(number)) for topic in program.inputs[member]],
        all_records,
    )


def _united(outputs: Sequence[Output]) -> DataFrame:
    return reduce(lambda rows, other_rows: rows.union(other_rows), map(_rows, outputs))


def _rows(output: Output) -> DataFrame:
    topic = F.lit(output.topic)
    value = F.col("value")
    if output.key_filter is not None:
        has_key = F.col("key").isNotNull()
        report = bytearray(one_dropped(output.key_filter, "null key"))
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

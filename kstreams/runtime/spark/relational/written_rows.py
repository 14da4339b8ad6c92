"""What relational sub-topologies make is written to topics by the executors, in order wherever one key has an order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from kstreams.dsl import graph as g
from kstreams.runtime.spark.io.output_topics import OutputTopics
from kstreams.runtime.spark.io.reports import CONTROL_TOPIC, merged, report, split_reports
from kstreams.runtime.spark.io.rows import OUT_SCHEMA, batches_of, table_of
from kstreams.runtime.spark.program import Program, RowRoutes
from kstreams.runtime.spark.relational.path_plan import PathPlan

RunsOverArrow = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def written_rows(made: DataFrame, plan: PathPlan, number: int, program: Program, output: OutputTopics) -> DataFrame:
    """The rows of a sub-topology, written; what remains are those that go to Spark as well, and reports.

    Parameters
    ----------
    made : DataFrame
        As `relational_rows` gives it.
    number : int
        The sub-topology.
    output : OutputTopics
        Where executors write.
    """
    if _come_from_several(plan, number, program):
        made = made.repartition("topic", "partition")
    return made.mapInArrow(_written_in_arrow(program.routes, output), OUT_SCHEMA)


def merged_reports(made: DataFrame) -> DataFrame:
    """The reports of a sub-topology that writes to no topics: one for a Spark partition in place of one for a row."""
    return made.where(f"topic = '{CONTROL_TOPIC}'").mapInArrow(_merged_in_arrow, OUT_SCHEMA)


def _come_from_several(plan: PathPlan, number: int, program: Program) -> bool:
    """Whether rows with an order among them come to a topic by several Spark partitions.

    Of one topic partition all rows are in one, in order. But topics are read apart from each other, and so is each
    parent of a merge, and what goes to one topic by two sinks; and what is handed over comes from several tasks.
    """
    nodes, topics = plan.nodes[number], program.inputs[number]
    sinks = [node.topic for node in nodes if isinstance(node, g.To)]
    several_read = len(topics) > 1 or not program.internal.isdisjoint(topics)
    return several_read or len(set(sinks)) < len(sinks) or any(isinstance(node, g.Merge) for node in nodes)


def _written_in_arrow(routes: RowRoutes, output: OutputTopics) -> RunsOverArrow:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, reports = split_reports(table_of(batches))
        topics, written = pc.unique(rows["topic"]).to_pylist(), Counter[str]()
        with output.writer() as writer:
            for batch in batches_of(_of_topics(rows, filter(routes.to_log, topics))):
                writer.send(batch)
                written[batch.source.topic] += len(batch)
            yield from _of_topics(rows, filter(routes.to_spark, topics)).to_batches()
            said = merged(reports)
            yield report(0, msgspec.structs.replace(said, written=dict(written), transaction=writer.prepare()))

    return write


def _merged_in_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield report(0, merged(split_reports(table_of(batches))[1]))


def _of_topics(rows: pa.Table, topics: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["topic"], pa.array(list(topics), pa.string())))

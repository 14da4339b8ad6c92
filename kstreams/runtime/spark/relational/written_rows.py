"""`written_rows`: executors write the rows of relational sub-topologies; rows of one key that are in order stay so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.log.partitioning import partitions_of
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, CONTROL_TOPIC, Block, blocks_of, in_arrow
from kstreams.runtime.spark.exchange.reports import TaskReport, merged, report, reported
from kstreams.runtime.spark.exchange.rows import OUT_SCHEMA, ArrowFunction, batches_of, table_of, whole
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.program import Program, RowRoutes
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.serdes import SessionWindowedSerde, TimeWindowedSerde, serde_of

_WINDOW_BYTES: dict[type, int] = {TimeWindowedSerde: 8, SessionWindowedSerde: 16}
"""The number of bytes after the key in a windowed key, by serde."""


class TopicPartitioner(NamedTuple):
    """The partitioner of one topic.

    Parameters
    ----------
    partitions : int
        The number of partitions of the topic.
    window_bytes : int
        The number of bytes of the window at the end of each key. They do not count, so that all windows of a key are in
        one partition.
    """

    partitions: int
    window_bytes: int

    def of(self, keys: pa.Array, source_partitions: pa.Array) -> pa.Array:
        """Return the partition of each row by its key, or by the partition that it was read from if it has no key."""
        inner = pc.binary_slice(keys, 0, -self.window_bytes) if self.window_bytes else keys
        by_key = partitions_of(inner, self.partitions)
        return pa.array(np.where(by_key < 0, source_partitions.to_numpy() % self.partitions, by_key), pa.int32())


def partitioners_of(nodes: Iterable[Node], typed: TypedGraph, program: Program) -> dict[str, TopicPartitioner]:
    """Return the partitioners of the topics that some nodes write, by name of the topic in the log."""
    partitioners = {}
    for node in nodes:
        if isinstance(node, g.To | g.Repartition):
            topic = program.topic_names.get(str(node.topic), str(node.topic))
            count = program.partitions.get(topic, program.default_partitions)
            partitioners[topic] = TopicPartitioner(count, _window_bytes(typed, node))
    return partitioners


def partitioned(rows: pa.Table, partitioners: Mapping[str, TopicPartitioner]) -> pa.Table:
    """Return the rows with their partition in the topic; rows of other topics stay unchanged."""
    topics = pc.unique(rows["topic"]).to_pylist()
    return pa.concat_tables(_partitioned(rows, topic, partitioners.get(topic), len(topics)) for topic in topics)


def _partitioned(rows: pa.Table, topic: str, partitioner: TopicPartitioner | None, num_topics: int) -> pa.Table:
    of_topic = rows if num_topics == 1 else rows.filter(pc.equal(rows["topic"], topic))
    if partitioner is None:
        return of_topic
    partitions = partitioner.of(whole(of_topic["key"]), whole(of_topic["partition"]))
    return of_topic.set_column(of_topic.schema.get_field_index("partition"), "partition", partitions)


def _window_bytes(typed: TypedGraph, node: Node) -> int:
    return _WINDOW_BYTES.get(type(serde_of(typed.types[node.name].key.kind)), 0)


def written_rows(rows: DataFrame, plan: PathPlan, number: int, program: Program, output: StepOutput) -> DataFrame:
    """Write the rows of a sub-topology, and return blocks of the rows for Spark and of reports.

    Parameters
    ----------
    rows : DataFrame
        The result of `relational_rows`.
    number : int
        The sub-topology.
    output : StepOutput
        The output of the step.
    """
    partitioners = partitioners_of(plan.nodes[number], plan.typed, program)
    shuffled = _comes_from_several_partitions(plan, number, program) and _writes_user_topics(number, program)
    if shuffled:
        rows = rows.mapInArrow(_partitioned_in_arrow(partitioners), OUT_SCHEMA).repartition("topic", "partition")
    write = _written_in_arrow(number, program.routes, output, {} if shuffled else partitioners, shuffled=shuffled)
    return rows.mapInArrow(write, BLOCK_SCHEMA)


def _writes_user_topics(number: int, program: Program) -> bool:
    """Return True if a sub-topology writes to topics of the user."""
    return any(sink.topic not in program.topic_names for sink in program.sub_topology(number).sinks)


def _comes_from_several_partitions(plan: PathPlan, number: int, program: Program) -> bool:
    """Return True if rows of one topic may come from several Spark partitions, so that they must be sorted.

    The rows of one topic partition are in one Spark partition, in order. But each topic is read separately, and so is
    each parent of a merge, and each sink if several write to one topic. Records of upstream sub-topologies come from
    several tasks.
    """
    nodes = plan.nodes[number]
    topics = program.inputs[number]
    sinks = [node.topic for node in nodes if isinstance(node, g.To)]
    several_read = len(topics) > 1 or not program.internal.isdisjoint(topics)
    return several_read or len(set(sinks)) < len(sinks) or any(isinstance(node, g.Merge) for node in nodes)


def _partitioned_in_arrow(partitioners: Mapping[str, TopicPartitioner]) -> ArrowFunction:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from partitioned(table_of([batch]), partitioners).to_batches()

    return run


def _written_in_arrow(
    number: int,
    routes: RowRoutes,
    output: StepOutput,
    partitioners: Mapping[str, TopicPartitioner],
    *,
    shuffled: bool,
) -> ArrowFunction:
    """Return the function that partitions and writes rows. Shuffled rows have their partitions, and are sorted here."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        written = Counter[str]()
        reports = list[TaskReport]()
        context = TaskContext.get()
        with output.writer(f"{number}_r{context.partitionId() if context else 0}") as writer:
            single_batches = (partitioned(table_of([batch]), partitioners) for batch in batches)
            for table in [table_of(batches)] if shuffled else single_batches:
                encoded_reports = _of_topics(table, [CONTROL_TOPIC])["value"].to_pylist()
                reports += map(reported, encoded_reports)
                topics = [topic for topic in pc.unique(table["topic"]).to_pylist() if topic != CONTROL_TOPIC]
                for batch in batches_of(_of_topics(table, filter(routes.to_log, topics))):
                    writer.send(batch)
                    written[batch.source.topic] += len(batch)
                for topic in filter(routes.to_spark, topics):
                    yield from _blocks(topic, _of_topics(table, [topic]))
            dropped = merged(reports)
            yield report(0, msgspec.structs.replace(dropped, written=dict(written), outputs=writer.prepare()))

    return lambda batches: in_arrow(write(batches))


def _blocks(topic: str, rows: pa.Table) -> Iterator[Block]:
    """Yield the rows of one topic as blocks, writer by writer."""
    for origin in pc.unique(rows["origin"]).to_pylist():
        of_writer = rows.filter(pc.equal(rows["origin"], origin)).combine_chunks()
        columns = (whole(of_writer[name]) for name in ("key", "value", "timestamp", "headers"))
        offsets = of_writer["offset"].to_numpy()
        yield from blocks_of(topic, origin, offsets, EncodedRows(*columns), of_writer["partition"].to_numpy())


def _of_topics(rows: pa.Table, topics: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["topic"], pa.array(list(topics), pa.string())))

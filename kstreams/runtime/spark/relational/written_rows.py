"""`written_rows`: executors write the rows of relational sub-topologies, in order where the rows of a key have one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, CONTROL_TOPIC, Block, blocks_of, in_arrow
from kstreams.runtime.spark.exchange.reports import TaskReport, merged, report, reported
from kstreams.runtime.spark.exchange.rows import OUT_SCHEMA, batches_of, table_of, whole
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.program import Program, RowRoutes
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.serdes import SessionWindowedSerde, TimeWindowedSerde, serde_of

_WINDOW_BYTES: dict[type, int] = {TimeWindowedSerde: 8, SessionWindowedSerde: 16}
"""The number of bytes after the key in a windowed key, by serde."""


class PartitionsOfTopic(NamedTuple):
    """The partitioning of one topic.

    Parameters
    ----------
    partitions : int
        Of the topic.
    window_bytes : int
        At the end of each key: windows of one key stay together, only the key inside decides.
    """

    partitions: int
    window_bytes: int

    def of(self, keys: pa.Array, own: pa.Array) -> pa.Array:
        """Return the partition of each row, by its key or by the partition of its origin."""
        inner = pc.binary_slice(keys, 0, -self.window_bytes) if self.window_bytes else keys
        chosen = partitions_of(inner, self.partitions)
        return pa.array(np.where(chosen < 0, own.to_numpy() % self.partitions, chosen), pa.int32())


def places_of(nodes: Iterable[Node], typed: TypedGraph, program: Program) -> dict[str, PartitionsOfTopic]:
    """Return the partitioning of the rows that some nodes write, by name of the topic in the log."""
    places = {}
    for node in nodes:
        if isinstance(node, g.To | g.Repartition):
            topic = program.topic_names.get(str(node.topic), str(node.topic))
            count = program.partitions.get(topic, program.default_partitions)
            places[topic] = PartitionsOfTopic(count, _window_bytes(typed, node))
    return places


def placed(rows: pa.Table, places: Mapping[str, PartitionsOfTopic]) -> pa.Table:
    """Return the rows with the partition in their topic; rows of other topics stay unchanged."""
    topics = pc.unique(rows["topic"]).to_pylist()
    return pa.concat_tables(_placed(rows, topic, places.get(topic), len(topics)) for topic in topics)


def _placed(rows: pa.Table, topic: str, placing: PartitionsOfTopic | None, several: int) -> pa.Table:
    mine = rows if several == 1 else rows.filter(pc.equal(rows["topic"], topic))
    if placing is None:
        return mine
    chosen = placing.of(whole(mine["key"]), whole(mine["partition"]))
    return mine.set_column(mine.schema.get_field_index("partition"), "partition", chosen)


def _window_bytes(typed: TypedGraph, node: Node) -> int:
    return _WINDOW_BYTES.get(type(serde_of(typed.types[node.name].key.kind)), 0)


RunsOverArrow = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def written_rows(rows: DataFrame, plan: PathPlan, number: int, program: Program, output: StepOutput) -> DataFrame:
    """Write the rows of a sub-topology, and return blocks of the rows for Spark and of reports.

    Parameters
    ----------
    rows : DataFrame
        As `relational_rows` gives it.
    number : int
        The sub-topology.
    output : StepOutput
        The output of the step.
    """
    places = places_of(plan.nodes[number], plan.facts, program)
    mixed = _come_from_several(plan, number, program) and _writes(number, program)
    if mixed:
        rows = rows.mapInArrow(_placed_in_arrow(places), OUT_SCHEMA).repartition("topic", "partition")
    write = _written_in_arrow(number, program.routes, output, {} if mixed else places, mixed=mixed)
    return rows.mapInArrow(write, BLOCK_SCHEMA)


def _writes(number: int, program: Program) -> bool:
    """Return True if a sub-topology writes to topics of the user."""
    return any(sink.topic not in program.topic_names for sink in program.sub_topology(number).sinks)


def _come_from_several(plan: PathPlan, number: int, program: Program) -> bool:
    """Return True if ordered rows reach a topic through several Spark partitions.

    Of one topic partition all rows are in one, in order. But topics are read apart from each other, and so is each
    parent of a merge, and what goes to one topic by two sinks; and what is handed over comes from several tasks.
    """
    nodes = plan.nodes[number]
    topics = program.inputs[number]
    sinks = [node.topic for node in nodes if isinstance(node, g.To)]
    several_read = len(topics) > 1 or not program.internal.isdisjoint(topics)
    return several_read or len(set(sinks)) < len(sinks) or any(isinstance(node, g.Merge) for node in nodes)


def _placed_in_arrow(places: Mapping[str, PartitionsOfTopic]) -> RunsOverArrow:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from placed(table_of([batch]), places).to_batches()

    return run


def _written_in_arrow(
    number: int, routes: RowRoutes, output: StepOutput, places: Mapping[str, PartitionsOfTopic], *, mixed: bool
) -> RunsOverArrow:
    """Return the function that partitions and writes rows; mixed rows are sorted together first."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        written = Counter[str]()
        reports = list[TaskReport]()
        context = TaskContext.get()
        with output.writer(f"{number}_r{context.partitionId() if context else 0}") as writer:
            for table in [table_of(batches)] if mixed else (placed(table_of([batch]), places) for batch in batches):
                reports += [
                    reported(raw_report) for raw_report in _of_topics(table, [CONTROL_TOPIC])["value"].to_pylist()
                ]
                topics = [topic for topic in pc.unique(table["topic"]).to_pylist() if topic != CONTROL_TOPIC]
                for batch in batches_of(_of_topics(table, filter(routes.to_log, topics))):
                    writer.send(batch)
                    written[batch.source.topic] += len(batch)
                for topic in filter(routes.to_spark, topics):
                    yield from _blocks(topic, _of_topics(table, [topic]))
            raw_report = merged(reports)
            yield report(0, msgspec.structs.replace(raw_report, written=dict(written), outputs=writer.prepare()))

    return lambda batches: in_arrow(write(batches))


def _blocks(topic: str, rows: pa.Table) -> Iterator[Block]:
    """Yield the rows of one topic as blocks, writer by writer."""
    for origin in pc.unique(rows["origin"]).to_pylist():
        mine = rows.filter(pc.equal(rows["origin"], origin)).combine_chunks()
        columns = (whole(mine[name]) for name in ("key", "value", "timestamp", "headers"))
        yield from blocks_of(
            topic, origin, mine["offset"].to_numpy(), EncodedRows(*columns), mine["partition"].to_numpy()
        )


def _of_topics(rows: pa.Table, topics: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["topic"], pa.array(list(topics), pa.string())))

"""`ProgramSteps`: the steps of a query whose rows a program computes; executors write the rows, with their times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kstreams.dsl import graph as g
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.partitioning import partitions_of, rows_by_partition
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, Block, blocks_of, in_arrow
from kstreams.runtime.spark.exchange.reports import TaskReport, report, taken_reports
from kstreams.runtime.spark.exchange.rows import ArrowFunction, titled
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.steps import AppliedStep
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


class WrittenTopic(NamedTuple):
    """The topic that a query writes.

    Parameters
    ----------
    name : str
        The name in the topology.
    partitioner : TopicPartitioner
    is_in_delta : bool
        True if the rows are also written to a Delta table.
    """

    name: str
    partitioner: TopicPartitioner
    is_in_delta: bool

    @classmethod
    def of(cls, node: g.To, typed: TypedGraph, program: Program) -> WrittenTopic:
        """Return the topic that a node writes."""
        topic = str(node.topic)
        window_bytes = _WINDOW_BYTES.get(type(serde_of(typed.types[node.name].key.kind)), 0)
        count = program.partitions.get(topic, program.default_partitions)
        return cls(topic, TopicPartitioner(count, window_bytes), program.routes.to_delta(topic))


class ProgramSteps:
    """The `StepExecutor` of a query.

    Parameters
    ----------
    topic : WrittenTopic
    """

    def __init__(self, topic: WrittenTopic) -> None:
        self._topic = topic

    def run(self, step_input: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Write the rows of a batch. Spark computes them once: it would change its state again the second time."""
        columns = [F.col("key"), F.col("value").cast("binary"), F.unix_millis("timestamp").alias("timestamp")]
        rows = step_input.required_rows().select(*columns)
        blocks = rows.mapInArrow(_written_in_arrow(self._topic, step_input.output), BLOCK_SCHEMA)
        if self._topic.is_in_delta:
            blocks = step_input.persisted(blocks)
        offsets = sum(end - start for start, end in step_input.ranges.values())
        return blocks, [*taken_reports(blocks), TaskReport(records_in=offsets)], AppliedStep(step_input.number)


def _written_in_arrow(topic: WrittenTopic, output: StepOutput) -> ArrowFunction:
    """Return the function that writes rows.

    Its end is not the end of its input: if Spark fails before it, or ends the task, the rows end too. So it commits
    nothing: only the report of a task that Spark regards as finished reaches the driver, which commits.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        context = TaskContext.get()
        number = context.partitionId() if context else 0
        count = 0
        with output.writer(f"{topic.name}_r{number}") as writer:
            for batch in batches:
                rows = EncodedRows(
                    batch["key"].cast(pa.binary()),
                    batch["value"].cast(pa.binary()),
                    batch["timestamp"].cast(pa.int64()),
                )
                partitions = topic.partitioner.of(rows.keys, pa.repeat(pa.scalar(number), len(batch))).to_numpy()
                offsets = np.arange(count, count + len(batch))
                for part in _by_partition(topic.name, rows, partitions):
                    writer.send(part)
                if topic.is_in_delta:
                    yield from blocks_of(topic.name, number, offsets, rows, partitions)
                count += len(batch)
            yield report(number, TaskReport(written={topic.name: count}, outputs=writer.prepare()))

    return titled(lambda batches: in_arrow(write(batches)), f"write {topic.name}")


def _by_partition(topic: str, rows: EncodedRows, partitions: np.ndarray) -> Iterator[Batch]:
    for partition, indices in rows_by_partition(partitions):
        taken = pa.array(indices)
        keys = rows.keys.take(taken)
        values = rows.values.take(taken)
        offsets = np.arange(len(indices))
        yield Batch(TopicPartition(topic, int(partition)), offsets, keys, values, rows.timestamps.take(taken))

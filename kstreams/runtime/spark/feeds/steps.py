"""`FeedSteps`: the steps of a feed: executors write the rows of a batch to its topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from kstreams.errors import KStreamsError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.cluster.slots import task_slots
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, Block, in_arrow
from kstreams.runtime.spark.exchange.reports import TaskReport, describe, report, taken_reports
from kstreams.runtime.spark.feeds.records import records_of
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.steps import AppliedStep


class FeedSteps:
    """See `StepExecutor`.

    Parameters
    ----------
    feed : Feed
    topic : str
        The real name of its topic.
    partitions : int
        Of that topic.
    clock : Clock
        The time of rows that tell none.
    """

    def __init__(self, feed: Feed, topic: str, partitions: int, clock: Clock) -> None:
        self._feed = feed
        self._topic = topic
        self._partitions = partitions
        self._clock = clock

    def run(self, step_input: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Write the rows."""
        assert step_input.rows is not None
        records = records_of(
            step_input.rows,
            self._feed,
            self._partitions,
            self._clock.wall_ms(),
            task_slots(step_input.rows.sparkSession),
        )
        written = records.mapInArrow(_written(self._topic, step_input.output), BLOCK_SCHEMA)
        return written, taken_reports(written), AppliedStep(step_input.number)


def _written(topic: str, output: StepOutput) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        context = TaskContext.get()
        with output.writer(f"feed_r{context.partitionId() if context else 0}") as writer:
            try:
                for records in batches:
                    for batch in _by_partition(topic, records):
                        writer.send(batch)
                task_report = TaskReport(outputs=writer.prepare())
            except KStreamsError as error:
                task_report = TaskReport(error=describe(error))
        yield report(0, task_report)

    return lambda batches: in_arrow(write(batches))


def _by_partition(topic: str, records: pa.RecordBatch) -> Iterator[Batch]:
    """The records of each partition: they lie together."""
    partitions = records["partition"].to_numpy()
    starts = np.flatnonzero(np.diff(partitions, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(partitions)], strict=True):
        part = records.slice(start, end - start)
        source = TopicPartition(topic, int(partitions[start]))
        yield Batch(source, np.arange(len(part)), part["key"], part["value"], part["timestamp"], None)

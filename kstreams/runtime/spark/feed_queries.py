"""`DataFrameFeeds`: the queries that write the rows of DataFrames to topics of an application, exactly once.

The rows of a DataFrame are stored in a topic, so that readers can read them again by their offsets, even if the
DataFrame returns other rows when it is evaluated again. Spark's checkpoint stores the offsets of a streaming DataFrame
(versions of a Delta table, names of files) batch by batch. Each batch is a step, and the number of the last step is
committed together with its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from kstreams.errors import KStreamsError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.log.topic_types import TopicTypes, create_typed
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.cluster.session import task_slots
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, Block, in_arrow
from kstreams.runtime.spark.exchange.reports import (
    ENDED,
    TaskReport,
    as_kstreams_error,
    describe,
    report,
    taken_reports,
)
from kstreams.runtime.spark.exchange.rows import ArrowFunction, Offsets, offsets_of
from kstreams.runtime.spark.feeds.records import records_of
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.deleted_input import NothingDeleted
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.output_topics import OutputTopics, StepOutput
from kstreams.runtime.spark.io.sink import LogSink, StepCommits
from kstreams.runtime.spark.program import Program, feed_group_of
from kstreams.runtime.spark.query import ExactlyOnceSteps, StepQuery
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.step_loop import StepLoop
from kstreams.runtime.spark.steps import AppliedStep
from kstreams.runtime.spark.storage.location import below
from kstreams.serdes import type_name


class FeedSteps:
    """The `StepExecutor` that writes the rows of one feed to its topic.

    Parameters
    ----------
    feed : Feed
    topic : str
        The topic's name in the log.
    partitions : int
        The number of partitions of the topic.
    clock : Clock
        Returns the timestamp of rows without a time column.
    """

    def __init__(self, feed: Feed, topic: str, partitions: int, clock: Clock) -> None:
        self._feed = feed
        self._topic = topic
        self._partitions = partitions
        self._clock = clock

    def run(self, step_input: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Write the rows of the step to the topic."""
        rows = step_input.required_rows()
        records = records_of(
            rows,
            self._feed,
            self._partitions,
            self._clock.wall_ms(),
            task_slots(rows.sparkSession),
        )
        written = records.mapInArrow(_write_in_arrow(self._topic, step_input.output), BLOCK_SCHEMA)
        return written, taken_reports(written), AppliedStep(step_input.number)


def _write_in_arrow(topic: str, output: StepOutput) -> ArrowFunction:
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
    """Yield one batch per run of records of the same partition; the rows are sorted by partition."""
    partitions = records["partition"].to_numpy()
    starts = np.flatnonzero(np.diff(partitions, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(partitions)], strict=True):
        rows = records.slice(start, end - start)
        target = TopicPartition(topic, int(partitions[start]))
        yield Batch(target, np.arange(len(rows)), rows["key"], rows["value"], rows["timestamp"], None)


CommitsFactory = Callable[[CommittedSteps, OutputTopics, Sequence[TopicPartition], str], StepCommits]
"""Creates the commits of a query's steps; the string is the folder of staged rows."""

_UNLIMITED_RETENTION = {"cleanup.policy": "delete", "retention.ms": "-1"}


class DataFrameFeeds:
    """The feeds of one application.

    Parameters
    ----------
    session : SparkSession
        Passed to feeds that are declared as functions of a session.
    feeds : sequence of Feed
    program : Program
    log : Log
    clock : Clock
    create_commits : callable
    """

    def __init__(
        self,
        session: SparkSession,
        feeds: Sequence[Feed],
        program: Program,
        log: Log,
        clock: Clock,
        create_commits: CommitsFactory,
    ) -> None:
        self._session = session
        self._feeds = feeds
        self._program = program
        self._log = log
        self._clock = clock
        self._create_commits = create_commits

    def create_topics(self) -> None:
        """Create the topics of the feeds that do not exist yet."""
        with self._log.admin() as admin:
            existing = admin.topics()
            for feed in self._feeds:
                topic = self._program.feeds[feed.topic]
                (key, value) = feed.serdes
                if topic not in existing:
                    types = TopicTypes(type_name(key), type_name(value))
                    create_typed(admin, topic, self._program.partitions[topic], _UNLIMITED_RETENTION, types)

    def queries(self) -> tuple[list[StepLoop], list[StepQuery]]:
        """Create the queries: those of static DataFrames, which end, and those of streaming DataFrames."""
        static = list[StepLoop]()
        streaming = list[StepQuery]()
        for feed in self._feeds:
            try:
                frame = feed.of(self._session)
            except Exception as error:
                raise feed_error(feed, error) from error
            if frame.isStreaming:
                streaming.append(self._streaming(feed, frame))
            else:
                static.append(self._static(feed, frame))
        return static, streaming

    def _streaming(self, feed: Feed, frame: DataFrame) -> StepQuery:
        batch_counter = self._batch_counter(feed)
        return StepQuery(
            self._program.storage,
            f"feed-{feed.topic}",
            frame,
            self._steps(feed),
            lambda batch_id: {batch_counter: batch_id + 1},
            query_name=f"{self._program.application_id}, {feed.name}",
            translate_error=partial(feed_error, feed),
        )

    def _static(self, feed: Feed, frame: DataFrame) -> StepLoop:
        reader = StaticOffsets(self._batch_counter(feed))
        limit = ReadAllAvailable()
        return StepLoop(
            frame.sparkSession, reader, limit, lambda step, last: None, lambda start, end: frame, self._steps(feed)
        )

    def _describe(self, feed: Feed, step: int, ranges: OffsetRanges) -> None:
        description = f"{self._program.application_id}, rows of {feed}: batch {step // 2}"
        self._session.sparkContext.setJobDescription(description)

    def _batch_counter(self, feed: Feed) -> TopicPartition:
        """Return the partition whose committed position counts the feed's batches; the group has no other positions."""
        return TopicPartition(self._program.feeds[feed.topic], 0)

    def _steps(self, feed: Feed) -> ExactlyOnceSteps:
        program = self._program
        batch_counter = self._batch_counter(feed)
        topic = batch_counter.topic
        group = feed_group_of(program.application_id, feed.topic)
        committed = CommittedSteps(self._log, group, [batch_counter], program.checkpoint_id)
        partitions = program.partitions[topic]
        output = OutputTopics(HomeAddress.of(program.config), "", program.partitions, partitions)
        staging = below(program.checkpoint, f"feeds/{feed.topic}")
        sink = LogSink(committed, self._create_commits(committed, output, [batch_counter], staging))
        work = FeedSteps(feed, topic, partitions, self._clock)
        return ExactlyOnceSteps(work, sink, None, NothingDeleted(), _ignore_reports, partial(self._describe, feed))


def feed_error(feed: Feed, error: Exception) -> KStreamsError:
    """Return the error that ends a feed: a KStreamsError as it is, or the feed's name, Spark's message and a remedy."""
    kstreams_error = as_kstreams_error(error)
    if type(kstreams_error) is not KStreamsError:
        return kstreams_error
    remedy = next((remedy for error_class, remedy in _REMEDIES.items() if error_class in str(error)), "")
    return KStreamsError(f"{feed} cannot read its DataFrame: {str(kstreams_error).removeprefix(ENDED)}{remedy}")


_READ_CHANGES = " Read its change data feed (changes=True), or pass over such versions (skipChangeCommits='true')."
_REMEDIES = {
    "DELTA_SOURCE_IGNORE_DELETE": _READ_CHANGES,
    "DELTA_SOURCE_TABLE_IGNORE_CHANGES": _READ_CHANGES,
    "DELTA_MISSING_CHANGE_DATA": " Let the table keep one: set its property delta.enableChangeDataFeed to true.",
}
"""Remedies by the error class that Spark's exceptions contain."""


class StaticOffsets:
    """The `StepOffsets` of a static DataFrame: its only step ends at offset 1."""

    def __init__(self, batch_counter: TopicPartition) -> None:
        self._end = offsets_of({batch_counter: 1})

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing: a static DataFrame does not grow."""

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        return self._end

    def stop(self) -> None:
        """Do nothing: there are no resources to release."""


def _ignore_reports(reports: list[TaskReport]) -> None:
    """Ignore the records of a feed: they are counted where the topology processes them."""

"""`Feeding`: the DataFrames that fill topics of an application, each by a query of its own whose steps count once.

A topic keeps what a DataFrame gave: what reads it has offsets that can be repeated, whatever the DataFrame gives when
it is asked again. A streaming DataFrame has its offsets (versions of a Delta table, files that were seen) in the
checkpoint, batch by batch; a batch is a step, and the number of the last one is committed with its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

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
from kstreams.runtime.spark.exchange.rows import Offsets, offsets_of
from kstreams.runtime.spark.feeds.records import records_of
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.deleted_input import NothingDeleted
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.open_homes import HomePlace
from kstreams.runtime.spark.io.output_topics import OutputTopics, StepOutput
from kstreams.runtime.spark.io.sink import LogSink, StepCommits
from kstreams.runtime.spark.program import Program, feed_group_of
from kstreams.runtime.spark.query import AppliedOnce, StepQuery
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.step_loop import StepLoop
from kstreams.runtime.spark.steps import AppliedStep
from kstreams.runtime.spark.storage.location import below
from kstreams.serdes import type_name


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
        rows = step_input.required_rows()
        records = records_of(
            rows,
            self._feed,
            self._partitions,
            self._clock.wall_ms(),
            task_slots(rows.sparkSession),
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


Commits = Callable[[CommittedSteps, OutputTopics, Sequence[TopicPartition], str], StepCommits]
"""How steps are committed, with the place for what is staged."""

_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1"}


class Feeding:
    """The feeds of one application.

    Parameters
    ----------
    session : SparkSession
        For feeds that ask for one.
    feeds : sequence of Feed
    program : Program
    log : Log
    clock : Clock
    commits : callable
    """

    def __init__(
        self, session: SparkSession, feeds: Sequence[Feed], program: Program, log: Log, clock: Clock, commits: Commits
    ) -> None:
        self._session = session
        self._feeds = feeds
        self._program = program
        self._log = log
        self._clock = clock
        self._commits = commits

    def create_topics(self) -> None:
        """Make the topics that are not there yet."""
        with self._log.admin() as admin:
            existing = admin.topics()
            for feed in self._feeds:
                topic = self._program.feeds[feed.topic]
                (key, value) = feed.serdes
                if topic not in existing:
                    types = TopicTypes(type_name(key), type_name(value))
                    create_typed(admin, topic, self._program.partitions[topic], _KEPT, types)

    def queries(self) -> tuple[list[StepLoop], list[StepQuery]]:
        """Those of static DataFrames, which end, and those of streaming ones."""
        static = list[StepLoop]()
        streaming = list[StepQuery]()
        for feed in self._feeds:
            try:
                frame = feed.of(self._session)
            except Exception as error:
                raise unreadable(feed, error) from error
            if frame.isStreaming:
                streaming.append(self._streaming(feed, frame))
            else:
                static.append(self._static(feed, frame))
        return static, streaming

    def _streaming(self, feed: Feed, frame: object) -> StepQuery:
        mark = self._mark(feed)
        storage = self._program.storage
        called = f"{self._program.application_id}, {feed.name}"
        steps = self._steps(feed)
        explained = partial(unreadable, feed)
        name = f"feed-{feed.topic}"
        return StepQuery(
            storage, name, frame, steps, lambda batch: {mark: batch + 1}, called=called, explained=explained
        )

    def _static(self, feed: Feed, frame: Any) -> StepLoop:
        reader = OneOffset(self._mark(feed))
        limit = ReadAllAvailable()
        return StepLoop(
            frame.sparkSession, reader, limit, lambda step, last: None, lambda start, end: frame, self._steps(feed)
        )

    def _described(self, feed: Feed, step: int, ranges: OffsetRanges) -> None:
        description = f"{self._program.application_id}, rows of {feed}: batch {step // 2}"
        self._session.sparkContext.setJobDescription(description)

    def _mark(self, feed: Feed) -> TopicPartition:
        """What the batches that are done are counted at: the group of a feed has no other positions."""
        return TopicPartition(self._program.feeds[feed.topic], 0)

    def _steps(self, feed: Feed) -> AppliedOnce:
        program = self._program
        mark = self._mark(feed)
        group = feed_group_of(program.application_id, feed.topic)
        committed = CommittedSteps(self._log, group, [mark], program.checkpoint_id)
        count = program.partitions[mark.topic]
        output = OutputTopics(HomePlace.of(program.config), "", program.partitions, count)
        commits = self._commits(committed, output, [mark], below(program.checkpoint, f"feeds/{feed.topic}"))
        work = FeedSteps(feed, mark.topic, count, self._clock)
        return AppliedOnce(
            work, LogSink(committed, commits), None, NothingDeleted(), _nothing, partial(self._described, feed)
        )


def unreadable(feed: Feed, error: Exception) -> KStreamsError:
    """What ended a feed: an error of ours as it is, else that the DataFrame cannot be read, and the cure if known."""
    kstreams_error = as_kstreams_error(error)
    if type(kstreams_error) is not KStreamsError:
        return kstreams_error
    cure = next((cure for sign, cure in _CURES.items() if sign in str(error)), "")
    return KStreamsError(f"{feed} cannot read its DataFrame: {str(kstreams_error).removeprefix(ENDED)}{cure}")


_NOT_APPENDED = " Read its change data feed (changes=True), or pass over such versions (skipChangeCommits='true')."
_CURES = {
    "DELTA_SOURCE_IGNORE_DELETE": _NOT_APPENDED,
    "DELTA_SOURCE_TABLE_IGNORE_CHANGES": _NOT_APPENDED,
    "DELTA_MISSING_CHANGE_DATA": " Let the table keep one: set its property delta.enableChangeDataFeed to true.",
}
"""By what Spark's exceptions say."""


class OneOffset:
    """The offsets of a static DataFrame: before it was read, and after. See `StepOffsets`."""

    def __init__(self, mark: TopicPartition) -> None:
        self._after = offsets_of({mark: 1})

    def prepareForTriggerAvailableNow(self) -> None:
        """It does not grow."""

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        return self._after

    def stop(self) -> None:
        """It holds nothing."""


def _nothing(reports: list[TaskReport]) -> None:
    """Its records are counted where they are processed."""

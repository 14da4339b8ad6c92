"""`run_task`: runs a native task for one step in a Spark worker: opens its state, processes, writes output and state.

For exactly-once processing, a task reads the state of the parent step and writes a new version for its step. Every
attempt reads and writes the same. The report of an attempt names its transaction or staged rows, which the driver
commits.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby, islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from kstreams.brief_logs import BriefLines, is_shown
from kstreams.config import Config
from kstreams.errors import CorruptStateError, KStreamsError, LogError, StateError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import ManualClock, SystemClock
from kstreams.log.partitioning import split_by_partition
from kstreams.os.garbage_collection import spare_worker
from kstreams.processor.context.application import Application, TaskSettings
from kstreams.processor.context.encoded_rows import EncodedRows, Partitions
from kstreams.processor.task.partition_group import Interleaved, PartitionGroup
from kstreams.processor.task.task import ResumePoint, Task, TaskResources
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.spark.cluster.shipping import unpack
from kstreams.runtime.spark.exchange.blocks import Block, blocks_in, blocks_of, in_arrow
from kstreams.runtime.spark.exchange.merged_blocks import merged, spilled
from kstreams.runtime.spark.exchange.reports import StoreSize, TaskReport, describe, report
from kstreams.runtime.spark.exchange.rows import ArrowFunction
from kstreams.runtime.spark.io.control_blocks import TaskBlocks
from kstreams.runtime.spark.io.from_log import from_log
from kstreams.runtime.spark.io.offset_ranges import OffsetRange
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.output_topics import NoTopics, RowWriter
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.steps import Step
from kstreams.runtime.spark.tasks.local_state import OpenedState, opened_state
from kstreams.runtime.spark.tasks.snapshots import SNAPSHOTS
from kstreams.runtime.spark.tasks.state_cache import STATE_CACHE
from kstreams.runtime.spark.tasks.state_files import NEXT_OFFSET, StateFiles, state_files
from kstreams.runtime.spark.tasks.task_folder import TaskFolder
from kstreams.state.api import Changes, StateStore, TaskState
from kstreams.state.task_state import observed_times
from kstreams.structured_logs import LINE_FORMATS


class RowCollector:
    """The collector of one task in one step.

    Parameters
    ----------
    program : Program
        Has the number of partitions and the destinations of each topic.
    writer : RowWriter
        Writes to the user's topics.
    sub_topology, partition : int
        Identify the task as the origin of its rows.
    round_number : int
        The round of the step. Offsets of a later round are higher.
    """

    def __init__(
        self, program: Program, writer: RowWriter, sub_topology: int, partition: int, round_number: int = 0
    ) -> None:
        self._program = program
        self._routes = program.routes
        self._writer = writer
        self._origin = sub_topology << 20 | partition
        self._first_offset = round_number << 40
        self._sent: Counter[str] = Counter()
        self._blocks: list[Block] = []

    def partitions(self, topic: str) -> int:
        """Return the number of partitions that a topic has or will have."""
        return self._program.partitions_of(topic)

    def refused(self, topic: str, rows: EncodedRows) -> Mapping[int, LogError]:
        """Return the rows that a topic of the user refuses, with the reason; repartition topics take all rows."""
        return self._writer.refused(rows.as_batch(topic)) if self._routes.to_log(topic) else {}

    def merges(self, topic: str) -> bool:
        """Return True if the rows of several tasks are merged by stream time, as those of internal topics are."""
        return topic in self._routes.internal

    def has_ranks(self, topic: str) -> bool:
        """Return whether rows of a topic that merges carry the ranks of their source records."""
        return topic in self._program.order.topics

    def send(self, topic: str, rows: EncodedRows, partitions: Partitions) -> None:
        """Send rows of one topic, with the partition of each row."""
        first = self._first_offset + self._sent[topic]
        if self._routes.to_spark(topic):
            offsets = np.arange(first, first + len(partitions), dtype=np.int64)
            self._blocks += blocks_of(topic, self._origin, offsets, rows, partitions)
        self._sent[topic] += len(partitions)
        if self._routes.to_log(topic):
            for batch, _ in split_by_partition(
                topic, partitions, rows.keys, rows.values, rows.timestamps, rows.headers
            ):
                self._writer.send(batch)

    @property
    def written(self) -> dict[str, int]:
        """The number of rows written to each topic of the user."""
        return {topic: count for topic, count in self._sent.items() if self._routes.to_log(topic)}

    @property
    def shuffled_topics(self) -> list[str]:
        """The internal topics with rows that other tasks of the step read."""
        return sorted(self._routes.internal & self._sent.keys())

    def drain(self) -> list[Block]:
        """Return the blocks for other tasks since the last call."""
        blocks = self._blocks
        self._blocks = []
        return blocks


TaskInput = Mapping[TopicPartition, Iterable[Batch]]
"""By partition: its batches in order of offsets, as an iterable that can be read several times."""


def in_order(task_input: TaskInput, stamp: Callable[[Batch], Batch]) -> Iterator[Interleaved]:
    """Yield the records of all partitions, always from the partition whose next record has the lowest timestamp.

    One batch of each partition is buffered. The next batch is read when the buffered one is used up.

    Parameters
    ----------
    task_input : mapping of TopicPartition to iterable of Batch
    stamp : callable
        Sets the timestamps of a batch; called once for each batch, in order of offsets.

    Examples
    --------
    >>> from kstreams.kernel.batch import Row
    >>> def batch(name, *times):
    ...     return Batch.of_rows(TopicPartition(name, 0), [Row(None, None, time, ()) for time in times])
    >>> a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    >>> batches = {a: [batch("a", 1, 7), batch("a", 8)], b: [batch("b", 2, 9)]}
    >>> [str(run.parts[part].source) for run in in_order(batches, lambda batch: batch) for part, _ in run.turns()]
    ['a-0', 'b-0', 'a-0', 'a-0', 'b-0']
    """
    group = PartitionGroup(sorted(task_input), stamp=stamp)
    unread = {source: iter(task_input[source]) for source in sorted(task_input)}
    while True:
        for source in list(unread):
            while not group.buffered(source):
                batch = next(unread[source], None)
                if batch is None:
                    del unread[source]
                    break
                group.add(batch)
        runs = group.next_runs(sys.maxsize)
        if runs is None:
            return
        yield runs


UNUSED_SECONDS = 7 * 86_400
"""The time after which the folders of unused tasks are deleted."""


def task_path(state_dir: str | None, checkpoint: str, checkpoint_id: str, task: str) -> Path:
    """Return the folder of a task on this machine, which is the same for all workers of an executor.

    Parameters
    ----------
    state_dir : str or None
        The folder of the setting; None for Spark's local folders, which are deleted when the executor ends.
    checkpoint, checkpoint_id : str
        The location and the id of the application's checkpoint.
    task : str
    """
    root = local_folder(state_dir, task) / f"kstreams-state-{os.getuid()}"
    _remove_unused_once(root)
    name = hashlib.blake2b(f"{checkpoint} {checkpoint_id}".encode(), digest_size=8).hexdigest()
    return root / name / task


def local_folder(state_dir: str | None, task: str) -> Path:
    """Return the folder of the setting, or one of Spark's local folders, over which tasks are spread."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")
    return Path(state_dir or folders[zlib.crc32(task.encode()) % len(folders)])


@cache
def _remove_unused_once(root: Path) -> None:
    remove_unused(root, SystemClock().wall_ms() // 1000 - UNUSED_SECONDS)


def remove_unused(root: Path, before_s: float) -> None:
    """Delete the folders of tasks that were last used before a time and are not locked."""
    for lock in root.glob("*/*/.lock"):
        with suppress(OSError, StateError):
            if lock.stat().st_mtime < before_s:
                with TaskFolder(lock.parent):
                    shutil.rmtree(lock.parent)
                lock.parent.parent.rmdir()


_handler = logging.StreamHandler()
_handler.addFilter(is_shown)


def configure_logging(config: Config) -> None:
    """Write log lines to standard error in `logging.format`, unless the process has other log handlers.

    A worker process may run another application next, whose lines then have the format of that application.
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_handler)
        logging.getLogger("kstreams").setLevel(logging.WARNING)
    if _handler in root.handlers:
        root.setLevel(config["logging.level"])
    create_formatter = LINE_FORMATS.get(config["logging.format"])
    _handler.setFormatter(BriefLines() if create_formatter is None else create_formatter(config))


logger = logging.getLogger(__name__)

OpenWriter = Callable[[str], RowWriter]
"""Opens the writer of a task, by the name of the task."""


def tasks_in_arrow(
    packed: bytes, sub_topology: int, step: Step, open_writer: OpenWriter, ranges: Sequence[Sequence[OffsetRange]]
) -> ArrowFunction:
    """Return the function for `mapInArrow` that runs each task whose control block is in the Spark partition.

    Parameters
    ----------
    packed : bytes
        The packed program.
    open_writer : callable
        Opens the writer of a task's output.
    ranges : sequence of sequence of OffsetRange
        By task: the offsets that it reads from the log.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        logging.getLogger("kstreams.processor").setLevel(logging.ERROR)  # the driver logs dropped records
        program: Program = unpack(packed)
        configure_logging(program.config)
        home = HomeAddress.of(program.config)
        sub = program.sub_topology(sub_topology)
        for partition, blocks in groupby(blocks_in(batches), lambda block: block.partition):
            task_blocks = TaskBlocks.of(spilled(blocks, local_folder(program.state_dir, str(partition))))
            yield from task_blocks.reports
            if task_blocks.runs:
                task_input: TaskInput = {**from_log(home, ranges[partition]), **merged(task_blocks.records)}
                yield from run_task(program, sub, partition, step, task_input, open_writer)
        spare_worker()

    return lambda batches: in_arrow(run(batches))


def run_task(
    program: Program,
    sub: SubTopology,
    partition: int,
    step: Step,
    task_input: TaskInput,
    open_writer: OpenWriter = NoTopics,
) -> Iterator[Block]:
    """Run one task in one step.

    Parameters
    ----------
    task_input : mapping of TopicPartition to iterable of Batch
    open_writer : callable
        Opens the writer of the task's output.

    Yields
    ------
    Block
        The rows that the task hands to Spark, and its report.
    """
    task = str(TaskId(sub.id, partition))
    num_yielded = 0
    if not task_input and task in step.resting and not step.end and not _is_for_snapshots(program, step):
        yield report(partition, TaskReport(resting=[task]))
        return
    try:
        try:
            for output in _attempt(program, sub, partition, step, task_input, open_writer):
                yield output
                num_yielded += 1
        except CorruptStateError as damage:
            logger.warning("%s. They are rebuilt from the state files, and the step is run again", damage)
            STATE_CACHE.clear()  # the damaged state may be that of a global table
            yield from islice(_attempt(program, sub, partition, step, task_input, open_writer), num_yielded, None)
    except KStreamsError as error:
        yield report(partition, TaskReport(error=describe(error)))
    STATE_CACHE.trim(program.limits)


def _attempt(
    program: Program, sub: SubTopology, partition: int, step: Step, task_input: TaskInput, open_writer: OpenWriter
) -> Iterator[Block]:
    """Yield the output of a task in one step, which is the same in every attempt."""
    files = state_files(program, sub.id, partition)
    version = step.state_of(sub.id, partition)
    task = str(TaskId(sub.id, partition))
    path = task_path(program.state_dir, program.checkpoint, program.checkpoint_id, task)
    caching = program.config.caches
    limits = program.limits_in_step
    with (
        opened_state(path, files, sub.stores, version, caching=caching, limits=limits) as state,
        open_writer(task) as writer,
    ):
        yield from TaskRun(program, sub, partition, step, state, writer).outputs(task_input, files)
    if _is_for_snapshots(program, step):
        SNAPSHOTS.offer(files, version, sub.stores)


def _is_for_snapshots(program: Program, step: Step) -> bool:
    """Return True if tasks check in this step whether a snapshot is due."""
    return step.number > 0 and step.number % (2 * program.snapshot_every) == 0 and step.round_number == 0


class TaskRun:
    """One attempt of a task at a step."""

    def __init__(
        self,
        program: Program,
        sub: SubTopology,
        partition: int,
        step: Step,
        opened: OpenedState,
        writer: RowWriter,
    ) -> None:
        self._program = program
        self._step = step
        self._state = opened.stores
        self._writer = writer
        self._partition = partition
        self._id = TaskId(sub.id, partition)
        self._version = step.state_of(sub.id, partition)
        self._metadata = dict(opened.metadata)
        self._collector = RowCollector(program, writer, sub.id, partition, step.round_number)
        clock = ManualClock(step.now_ms)
        application = Application(program.application_id, TaskSettings.of(program.config), clock, program.topic_names)
        global_stores = {} if sub.is_global else _global_stores(program, step)
        resources = TaskResources(opened.stores, self._collector, global_stores)
        self._task = Task(sub, partition, application, resources, ResumePoint(self._metadata, self._metadata))

    def outputs(self, task_input: TaskInput, files: StateFiles) -> Iterator[Block]:
        """Process, commit, and yield the output."""
        active_topics = self._program.active_topics(self._id.sub_topology, self._partition, self._step.behind)
        self._task.pass_time(awake=active_topics.union(source.topic for source in task_input))
        for runs in in_order(task_input, self._stamped):
            self._task.process_interleaved(runs)
            yield from self._collector.drain()
        self._task.report_skipped()
        self._task.punctuate()
        if self._step.end:
            self._task.end_of_input()
        self._task.flush()
        self._commit(files)
        self._task.close()
        yield from self._collector.drain()
        yield report(self._partition, self._report())

    def _report(self) -> TaskReport:
        task = str(self._id)
        return TaskReport(
            dropped=[(operator, reason, count) for (operator, reason), count in self._task.dropped.items()],
            records_in=self._task.records_in,
            written=self._collector.written,
            shuffled_topics=self._collector.shuffled_topics,
            outputs=self._writer.prepare(),
            states={task: self._version},
            resting=[] if self._task.deadlines() else [task],
            stores=self._sizes,
            stream_times={} if self._task.stream_time < 0 else {task: self._task.stream_time},
        )

    def _stamped(self, batch: Batch) -> Batch:
        return self._program.order.placed(self._id.sub_topology, self._task.stamp(self._numbered(batch)))

    def _numbered(self, batch: Batch) -> Batch:
        """Number the rows of an internal topic from step to step, since they have no offsets of a log."""
        if batch.source.topic not in self._program.internal:
            return batch
        key = NEXT_OFFSET + batch.source.topic
        next_offset = self._metadata.get(key, 0)
        self._metadata[key] = next_offset + len(batch)
        offsets = np.arange(next_offset, next_offset + len(batch), dtype=np.int64)
        is_timed = batch.source.topic in self._program.timed
        return Batch(
            batch.source,
            offsets,
            batch.keys,
            batch.values,
            batch.timestamps,
            batch.headers,
            written_at=batch.written_at if is_timed else None,
            ranks=batch.ranks if is_timed else None,
        )

    def _commit(self, files: StateFiles) -> None:
        next_offsets = {key: value for key, value in self._metadata.items() if key.startswith(NEXT_OFFSET)}
        times = self._task.metadata() | self._task.deadlines() | observed_times(self._state)
        version = self._step.version_number
        changes = self._state.changes()
        self._sizes = _sizes(self._state, changes)
        self._version = files.write_changes(version, self._version, times | next_offsets, changes)


def _sizes(state: TaskState, changes: Mapping[str, Changes]) -> dict[str, StoreSize]:
    return {name: _size(*state.estimated_size(name), changes.get(name)) for name in state.stores}


def _size(rows: int, num_bytes: int, changed: Changes | None) -> StoreSize:
    """Return the size of a store; the estimate of the disk lacks the changes, which may include new rows."""
    if changed is None:
        return StoreSize(rows, num_bytes, 0)
    num_values = len(changed) - changed.values.null_count
    return StoreSize(max(rows, num_values), num_bytes, len(changed))


def _global_stores(program: Program, step: Step) -> dict[str, StateStore]:
    stores: dict[str, StateStore] = {}
    caching = program.config.caches
    limits = program.limits
    for sub in program.sub_topologies:
        if sub.is_global:
            files = state_files(program, sub.id, 0)
            version = step.state_of(sub.id, 0)
            name = f"{program.checkpoint}/{sub.id}"
            stores |= STATE_CACHE.at(name, files, sub.stores, version, caching=caching, limits=limits).state.stores
    return stores

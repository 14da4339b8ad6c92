"""`ActiveTask`: a task with its buffered input and its next offsets, opened from a restored task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import OffsetAndMetadata
from kstreams.metrics.sensors import TaskSensors
from kstreams.processor.context.current_task import in_task
from kstreams.processor.task.partition_group import Interleaved, PartitionGroup
from kstreams.processor.task.task import ResumePoint, Task, TaskResources
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.state.task_metadata import ENDED, changelogs_of, encode_changelog_ends, with_task_metadata
from kstreams.runtime.native.tasks.restored_task import RestoredTask
from kstreams.runtime.native.thread.sink_buffer import SinkBuffer, TaskCollector
from kstreams.runtime.native.time_alignment.task_input import RunLength, SlicePositions, TaskInput
from kstreams.state.api import TaskState
from kstreams.state.task_state import observed_times


class ActiveTask:
    """One task of a thread. Kafka Streams: `StreamTask`.

    Parameters
    ----------
    plan : TaskPlan
    task : Task
    state : TaskState
    task_input : TaskInput
        The buffered records of the task.
    starts : mapping of TopicPartition to int
        The first offset to process, per input.
    clock : Clock
    sensors : TaskSensors
    ended : bool
        True if an earlier run over the same input has processed the end of the input.

    Attributes
    ----------
    changelogs : mapping of str to TopicPartition
        The changelog of each logged store.
    """

    def __init__(
        self,
        plan: TaskPlan,
        task: Task,
        state: TaskState,
        task_input: TaskInput,
        *,
        starts: Mapping[TopicPartition, int],
        clock: Clock,
        sensors: TaskSensors,
        ended: bool = False,
    ) -> None:
        self.plan = plan
        self.id = str(plan.id)
        self.task = task
        self.state = state
        self.input = task_input
        self.next_offsets = dict(starts)
        self.sensors = sensors
        self.ended = ended
        self._changelog_ends: dict[str, int] = {}
        self.changelogs: Mapping[str, TopicPartition] = {}
        self.uncommitted = False
        self.processed = 0  # records of all its inputs
        self.bytes_pending = 0  # of uncommitted changes, as of the last run
        self._clock = clock

    def count_deleted(self, source: TopicPartition, start: int, end: int) -> None:
        """Count the records [start, end) of an input as dropped: they were deleted before they were read."""
        self.task.count_deleted(source, start, end)
        self.uncommitted = True

    def run_once(self) -> int:
        """Process the next run. Return its number of records, or 0 if the task has to wait."""
        started_ms = self._clock.uptime_ms()
        is_enforced = self.sensors.debug is not None and bool(self.input.group.empty_partitions())
        runs = self.input.next_runs(started_ms)
        if runs is None:
            return 0
        self.uncommitted = True
        self.ended = False
        processed = self._process(runs, is_enforced)
        self.processed += processed
        bytes_before = self.bytes_pending
        self.bytes_pending = self.task.num_bytes_uncommitted()
        took_ms = self._clock.uptime_ms() - started_ms
        self.input.note_run(processed, runs.num_records, took_ms, self.bytes_pending - bytes_before)
        return processed

    def _process(self, runs: Interleaved, is_enforced: bool) -> int:
        debug = self.sensors.debug
        started_at = monotonic()
        if debug is not None:
            debug.record_lateness(runs, self.task.stream_time, enforced=is_enforced)
        counts = self.task.process_interleaved(runs)
        now_ms = self._clock.wall_ms()
        for part, count in zip(runs.parts, counts, strict=True):
            if count:
                self.sensors.read.record(part.source.topic, part.timestamps[:count], now_ms)
                self.next_offsets[part.source] = self.input.positions.after(part.source, int(part.offsets[count - 1]))
        self.sensors.record_run(self.task)
        if debug is not None:
            debug.record_run(self.task, started_at, sum(counts))
        return sum(counts)

    def interrupt(self) -> None:
        """Process no further record, from another thread. Records of an interrupted run are read again later."""
        self.task.interrupt()

    def punctuate(self) -> bool:
        """Call the wall-clock punctuators that are due. Return whether there was one."""
        started_at = monotonic()
        fired = self.task.punctuate()
        if fired and self.sensors.debug is not None:
            self.sensors.debug.punctuate.record(started_at)
        self.uncommitted |= fired
        return fired

    def pass_time(self) -> None:
        """Advance stream time where input is idle."""
        if self.task.pass_time(source.topic for source in self.input.group.awake_partitions()):
            self.uncommitted = True

    def end_input(self) -> None:
        """Process the end of a bounded input."""
        self.uncommitted = self.ended = True
        self.task.end_of_input()

    def skip_gaps(self, position: Callable[[TopicPartition], int]) -> None:
        """Skip offsets without a record to process: gaps, dropped rows, aborted transactions.

        Parameters
        ----------
        position : callable
            Returns the offset up to which a partition has been read.
        """
        for source in self.input.drained_partitions():
            passed = position(source)
            self.task.report_skipped(source.topic, passed)
            if passed > self.next_offsets[source]:
                self.next_offsets[source] = passed
                self.input.positions.skip(source, passed)
                self.uncommitted = True

    def offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit. The task metadata is committed with the first input, and with changelogs."""
        changelogs = encode_changelog_ends(self._changelog_ends)
        own = {**self.task.metadata(), ENDED: int(self.ended), **self.input.positions.metadata()}
        metadata = {**own, **observed_times(self.state), **changelogs}
        first = self.plan.inputs[0]
        offsets = {first: self.next_offsets[first], **self.next_offsets}
        return with_task_metadata(offsets, metadata, self.changelogs, self._changelog_ends)

    def restored(self, changelog_ends: Mapping[str, int], changelogs: Mapping[str, TopicPartition]) -> None:
        """Note that the logged stores are restored, each up to the end of its changelog."""
        self._changelog_ends = dict(changelog_ends)
        self.changelogs = changelogs

    def changelogs_written(self, ends: Mapping[str, int]) -> None:
        """Note the new ends of the changelogs of logged stores."""
        self._changelog_ends |= {store: ends[store] for store in ends.keys() & self._changelog_ends.keys()}

    def position(self) -> dict[TopicPartition, int]:
        """Return the last processed offset of each input."""
        return {source: offset - 1 for source, offset in self.next_offsets.items() if offset}

    def committed(self) -> None:
        """Note that all processed records are committed."""
        self.uncommitted = False
        self.bytes_pending = 0
        self.sensors.record_commit(self.task, self.state)

    def close(self) -> None:
        """Close processors and stores. Uncommitted changes are dropped."""
        try:
            self.task.close()
        finally:
            self.state.close()


_RUNS_BEFORE_COMMIT = 4  # as many at least: so uncommitted changes exceed their share by little


def opened_task(
    restored: RestoredTask, context: RuntimeContext, sink_buffer: SinkBuffer, is_queried: Callable[[], bool]
) -> ActiveTask:
    """Return the task with initialized operators and without buffered records."""
    plan = restored.plan
    state = restored.state
    metadata = restored.metadata
    sensors = TaskSensors.of(context.environment.config, plan.sub_topology, state)
    collector = TaskCollector(sink_buffer, plan.partition, sensors.written, context.environment.clock)
    resources = TaskResources(state, collector, context.topology.global_tables.stores)
    with in_task(str(plan.id)):
        task = Task(plan.sub_topology, plan.partition, context.application, resources, ResumePoint(metadata))
    # A bounded run always waits for inputs that are not at their end: its result must not depend on timing.
    idle_ms = context.environment.settings.max_task_idle_ms if context.topology.bounds is None else 0

    def placed(batch: Batch) -> Batch:
        return sink_buffer.order.placed(plan.id.sub_topology, task.stamp(batch))

    group = PartitionGroup(plan.inputs, stamp=placed, max_task_idle_ms=idle_ms)
    most_bytes = context.environment.settings.uncommitted_bytes // _RUNS_BEFORE_COMMIT
    task_input = TaskInput(
        plan,
        task,
        group,
        positions=SlicePositions(metadata),
        length=RunLength(context.environment.settings.max_poll_records, most_bytes),
        clock=context.environment.clock,
        is_queried=is_queried,
    )
    active = ActiveTask(
        plan,
        task,
        state,
        task_input,
        starts=restored.starts,
        clock=context.environment.clock,
        sensors=sensors,
        ended=bool(metadata.get(ENDED, 0)),
    )
    for source, committed in restored.lost.items():
        active.count_deleted(source, committed, restored.starts[source])
    state.committed.note(active.position())
    active.restored(restored.changelog_ends, changelogs_of(plan, context.environment.application_id))
    return active

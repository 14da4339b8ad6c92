"""`opened_task`: creates the task that a thread processes from a restored task."""

from __future__ import annotations

from collections.abc import Callable

from kstreams.errors import LogError
from kstreams.kernel.clock import Clock
from kstreams.metrics.sensors import RecordAges, TaskSensors
from kstreams.processor.context.current_record import in_task
from kstreams.processor.context.encoded_rows import EncodedRows, PartitionedRows, Partitions
from kstreams.processor.task.partition_group import PartitionGroup
from kstreams.processor.task.task import ResumePoint, Task, TaskResources
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.state.task_metadata import ENDED, changelogs_of
from kstreams.runtime.native.tasks.restored_task import RestoredTask
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.sink_buffer import SinkBuffer
from kstreams.runtime.native.time_alignment.task_input import RunLength, SlicePositions, TaskInput


class TaskCollector:
    """The `Collector` of one task."""

    def __init__(self, sink_buffer: SinkBuffer, partition: int, ages: RecordAges, clock: Clock) -> None:
        self._sink_buffer = sink_buffer
        self._partition = partition
        self._ages = ages
        self._clock = clock

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        return self._sink_buffer.partitions(topic)

    def merges(self, topic: str) -> bool:
        """Return whether the rows that several tasks write to a topic are sorted by stream time."""
        return self._sink_buffer.merges(topic)

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, LogError]:
        """Return the rows that the topic never takes, with the reason."""
        return self._sink_buffer.refused(rows.as_batch(topic))

    def send(self, topic: str, rows: EncodedRows, partitions: Partitions) -> None:
        """Take encoded rows of one topic, in order, with the partition of each row."""
        self._ages.record(topic, rows.timestamps, self._clock.wall_ms())
        self._sink_buffer.add(topic, PartitionedRows(rows, partitions), self._partition)


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
    group = PartitionGroup(plan.inputs, stamp=task.stamp, max_task_idle_ms=idle_ms)
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

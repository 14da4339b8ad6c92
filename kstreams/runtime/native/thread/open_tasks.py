"""Opens the tasks of a thread: stores, restore, committed offsets and task metadata."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

from kstreams.batch import TopicPartition
from kstreams.log.api import Admin, Consumer
from kstreams.processor.task.parameters import ResumePoint, TaskResources
from kstreams.processor.task.partition_group import PartitionGroup
from kstreams.processor.task.task import Task
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.job import Job
from kstreams.runtime.native.state.restore import StoreRestorer
from kstreams.runtime.native.state.task_metadata import (
    ENDED,
    Offsets,
    changelogs_of,
    committed_task_metadata,
    metadata_places,
)
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.collector import TaskCollector
from kstreams.runtime.native.thread.offset_reset import OffsetReset
from kstreams.runtime.native.thread.sink_buffer import SinkBuffer
from kstreams.state import open_task_state
from kstreams.state.api import TaskState
from kstreams.state.observed_times import observe_times

_RUNS_BEFORE_COMMIT = 4  # as many at least: so uncommitted changes exceed their share by little


def open_tasks(
    plans: Sequence[TaskPlan],
    job: Job,
    sink_buffer: SinkBuffer,
    consumer: Consumer,
    admin: Admin,
    stopping: threading.Event,
) -> Iterator[ActiveTask]:
    """Open one task after the other; `consumer` reads changelogs. Stops early when `stopping` is set."""
    application = job.application.id
    committed = admin.committed(application, [place for plan in plans for place in metadata_places(plan, application)])
    restorer = StoreRestorer(job.application, consumer, admin, job.on_restore, stopping.is_set)
    reset = OffsetReset(admin, consumer, job.default_reset, job.clock, job.layout.stateful)
    for plan in plans:
        if stopping.is_set():
            return
        stores, folder = plan.sub_topology.stores, job.state_folder / str(plan.id)
        state = open_task_state(stores, folder, limits=job.limits, caching=job.task_settings.caching)
        try:
            ends = restorer.restore(plan, state, committed)
            observe_times(state, committed_task_metadata(plan, committed, application))
            task = _open(plan, state, committed, reset.at_start(plan, committed), job, sink_buffer)
            task.restored(ends, changelogs_of(plan, application))
        except BaseException:
            state.close()
            raise
        yield task


def _open(
    plan: TaskPlan,
    state: TaskState,
    committed: Offsets,
    starts: Mapping[TopicPartition, int],
    job: Job,
    sink_buffer: SinkBuffer,
) -> ActiveTask:
    metadata = committed_task_metadata(plan, committed, job.application.id)
    resources = TaskResources(state, TaskCollector(sink_buffer, plan.partition), job.global_tables.stores)
    task = Task(plan.sub_topology, plan.partition, job.application, resources, ResumePoint(metadata))
    # A bounded run always waits for inputs that are not at their end: its result must not depend on timing.
    idle_ms = job.settings.max_task_idle_ms if job.bounds is None else 0
    group = PartitionGroup(plan.inputs, stamp=task.stamp, max_task_idle_ms=idle_ms)
    most_bytes = job.settings.uncommitted_bytes // _RUNS_BEFORE_COMMIT
    limits = job.clock, job.settings.max_poll_records, most_bytes, bool(metadata.get(ENDED, 0))
    active = ActiveTask(plan, task, state, group, starts, *limits)
    for source, start in starts.items():
        if source in committed and committed[source].offset < start:
            active.count_deleted(source, committed[source].offset, start)
    return active

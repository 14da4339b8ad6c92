"""`RestoredTask`: a task whose stores hold all committed changes, ready for a thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin, Consumer
from kstreams.metrics.debug_sensors import records_debug
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.state.restore import StoreRestorer
from kstreams.runtime.native.state.task_metadata import Offsets, committed_task_metadata, metadata_places
from kstreams.runtime.native.tasks.offset_reset import OffsetReset
from kstreams.state import open_task_state
from kstreams.state.api import TaskState
from kstreams.state.task_state import observe_times


@dataclass(frozen=True, slots=True)
class RestoredTask:
    """A task with restored stores.

    Parameters
    ----------
    plan : TaskPlan
    state : TaskState
    metadata : mapping of str to int
        The metadata of the last commit.
    starts : mapping of TopicPartition to int
        The first offset to process, per input.
    lost : mapping of TopicPartition to int
        The committed offsets of inputs whose records from there up to `starts` were deleted.
    changelog_ends : mapping of str to int
        The end offsets of the changelogs of logged stores.
    """

    plan: TaskPlan
    state: TaskState
    metadata: Mapping[str, int]
    starts: Mapping[TopicPartition, int]
    lost: Mapping[TopicPartition, int]
    changelog_ends: Mapping[str, int]


def open_state(plan: TaskPlan, context: RuntimeContext) -> TaskState:
    """Open the stores of a task as they are on disk."""
    stores = plan.sub_topology.stores
    folder = context.state.folder / str(plan.id)
    return open_task_state(
        stores,
        folder,
        limits=context.state.limits,
        caching=context.environment.task_settings.caching,
        measured=records_debug(context.environment.config),
    )


def restored_task(
    plan: TaskPlan,
    state: TaskState,
    context: RuntimeContext,
    restorer: StoreRestorer,
    *,
    admin: Admin,
    consumer: Consumer,
    read_to: Mapping[TopicPartition, int],
) -> RestoredTask:
    """Restore the stores of a task up to the last commit. Its changelogs have been read up to `read_to`."""
    committed: Offsets = admin.committed(
        context.environment.application_id, metadata_places(plan, context.environment.application_id)
    )
    ends = restorer.restore(plan, state, committed, read_to)
    metadata = committed_task_metadata(plan, committed, context.environment.application_id)
    observe_times(state, metadata)
    reset = OffsetReset(
        admin, consumer, context.environment.default_reset, context.environment.clock, context.topology.layout.stateful
    )
    starts = reset.at_start(plan, committed)
    lost = {at: committed[at].offset for at in starts if at in committed and committed[at].offset < starts[at]}
    return RestoredTask(plan, state, metadata, starts, lost, ends)

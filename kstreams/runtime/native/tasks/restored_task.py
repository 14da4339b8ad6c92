"""`RestoredTask`: a task whose stores have all committed changes, ready for a thread.

`OffsetReset` finds the first offsets of its inputs: those committed, or those of the offset resets of its sources.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin, Consumer
from kstreams.metrics.debug_sensors import records_debug
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.offset_reset import Reset, first_offset, reset_after_loss, reset_of
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.state.restore import StoreRestorer
from kstreams.runtime.native.state.task_metadata import Offsets, committed_task_metadata, metadata_places
from kstreams.state import open_task_state
from kstreams.state.api import TaskState
from kstreams.state.task_state import observe_times


@dataclass(frozen=True)
class OffsetReset:
    """Finds the offsets at which tasks read on.

    Parameters
    ----------
    admin : Admin
    consumer : Consumer
        Finds offsets by time; its assignment is changed.
    default : str, timedelta or None
        The reset of sources without their own (`consumer.auto.offset.reset`).
    clock : Clock
        The clock from whose present time durations count back.
    stateful : collection of int
        The sub-topologies whose input determines state.
    """

    admin: Admin
    consumer: Consumer
    default: Reset | None
    clock: Clock
    stateful: Collection[int]

    def at_start(self, plan: TaskPlan, committed: Offsets) -> dict[TopicPartition, int]:
        """Return the first offset to process of each input.

        Raises
        ------
        LogError
            If a committed offset is greater than the end of its partition, because the topic was created anew. If no
            offset is committed and the source's `offset_reset` is "none". And as `after_loss`.
        """
        begins = self.admin.beginning_offsets(plan.inputs)
        ends = self.admin.end_offsets(plan.inputs, committed_only=False)
        offsets = {}
        for source in plan.inputs:
            if source not in committed:
                offsets[source] = self._first(source, reset_of(plan.sub_topology, source.topic, self.default))
                continue
            next_ = committed[source].offset
            _check_end(source, next_, ends[source])
            lost = next_ < begins[source]
            offsets[source] = self.after_loss(plan, source, next_, begins[source]) if lost else next_
        return offsets

    def after_loss(self, plan: TaskPlan, source: TopicPartition, next_: int, begin: int) -> int:
        """Return the next offset if the records from `next_` to `begin` were deleted before they were read.

        Raises
        ------
        LogError
            If state depends on the records and the user has set no reset, or the reset "none".
        """
        stateful = plan.id.sub_topology in self.stateful
        reset = reset_after_loss(plan.sub_topology, source, (next_, begin), self.default, stateful=stateful)
        return self._first(source, reset)

    def _first(self, source: TopicPartition, reset: Reset) -> int:
        return first_offset(source, reset, self.admin, self.consumer, self.clock.wall_ms())


def _check_end(source: TopicPartition, offset: int, end: int) -> None:
    if offset > end:
        raise LogError(
            f"The application has processed {source} up to offset {offset}, but the topic ends at {end}: "
            "it was deleted and created anew. Run once with --reset to start anew."
        )


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

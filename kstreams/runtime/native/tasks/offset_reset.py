"""`OffsetReset`: the first offsets of a task: those committed, or those of the offset resets of its sources."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin, Consumer
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.offset_reset import Reset, first_offset, reset_after_loss, reset_of
from kstreams.runtime.native.state.task_metadata import Offsets


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

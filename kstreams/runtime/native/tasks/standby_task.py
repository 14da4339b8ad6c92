"""`StandbyTask`: a task whose stores are kept up to date, so that this process can run it without a long restore.

Kafka Streams: `StandbyTask`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.state.restore import Accepted, changelog_of
from kstreams.state.api import TaskState


class StandbyTask:
    """The stores of a task, and the topics that they follow: changelogs, or input topics that serve as changelogs.

    Parameters
    ----------
    plan : TaskPlan
    state : TaskState
    application_id : str
    accepted : callable
        Returns the filter of the records that a store applies.
    """

    def __init__(
        self,
        plan: TaskPlan,
        state: TaskState,
        application_id: str,
        accepted: Callable[[TaskPlan, TopicPartition], Accepted],
    ) -> None:
        self.plan = plan
        self.state = state
        changelogs = {store.name: changelog_of(store, plan, application_id) for store in plan.sub_topology.stores}
        self._store_of = {source: store for store, source in changelogs.items() if source is not None}
        self._accepted = {source: accepted(plan, source) for source in self._store_of}
        self._note_position()

    def positions(self, begins: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the next offset of each source."""
        offsets = {source: self.state.changelog_offset(store) or 0 for source, store in self._store_of.items()}
        return {source: max(offset, begins.get(source, 0)) for source, offset in offsets.items()}

    @property
    def sources(self) -> list[TopicPartition]:
        """The partitions that the stores follow."""
        return list(self._store_of)

    @property
    def inputs(self) -> list[TopicPartition]:
        """The sources that are inputs of the task: the stores follow them up to the committed offset."""
        return [source for source in self._store_of if source in self.plan.inputs]

    def apply(self, batch: Batch) -> None:
        """Apply records of one source."""
        self.state.restore(self._store_of[batch.source], self._accepted[batch.source](batch))
        self._note_position()

    def _note_position(self) -> None:
        """Set the position of the stores: the last applied offset of each source."""
        next_offsets = {source: self.state.changelog_offset(store) for source, store in self._store_of.items()}
        self.state.committed.note({source: offset - 1 for source, offset in next_offsets.items() if offset})

"""`StandbyTask`: a task whose stores are kept up to date, so that it can be run here soon.

Kafka Streams: `StandbyTask`.
"""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.batch import Batch, TopicPartition
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.state.task_metadata import changelogs_of
from kstreams.state.api import TaskState


class StandbyTask:
    """The stores of a task, and the changelogs that they follow.

    A store that keeps an input topic in place of a changelog follows nothing: it is restored when the task is run.

    Parameters
    ----------
    plan : TaskPlan
    state : TaskState
    application_id : str
    """

    def __init__(self, plan: TaskPlan, state: TaskState, application_id: str) -> None:
        self.plan, self.state = plan, state
        self._store_of = {source: store for store, source in changelogs_of(plan, application_id).items()}

    def positions(self, begins: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where to read on, in each changelog."""
        held = {source: self.state.changelog_offset(store) or 0 for source, store in self._store_of.items()}
        return {source: max(offset, begins.get(source, 0)) for source, offset in held.items()}

    @property
    def changelogs(self) -> list[TopicPartition]:
        """What it follows."""
        return list(self._store_of)

    def apply(self, batch: Batch) -> None:
        """Apply records of one of its changelogs."""
        self.state.restore(self._store_of[batch.source], batch)

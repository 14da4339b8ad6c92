"""Plans of steps under the checkpoint: published before a step runs, so that it runs again just the same."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kstreams.errors import StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.runtime.spark.exchange.rows import Offsets
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.tasks.step_folder import StepFolder


class GlobalTable(NamedTuple):
    """How far a global table was read for a step, and which step made that state."""

    step: int
    offsets: Offsets


class StepPlan(msgspec.Struct, frozen=True):
    """What is decided before a step runs: the step before it, its wall-clock time, the positions of global tables.

    Where it ends, and which source partitions are `behind` (see `Step`).
    """

    parent: int
    now_ms: int
    globals: dict[int, GlobalTable] = {}
    behind: list[TopicPartition] = []
    ends: Offsets = {}


class StepPlans:
    """The plans of one application.

    Parameters
    ----------
    storage : CheckpointStorage
    """

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._folder = StepFolder(storage, "plans")

    def newest(self) -> int:
        """The last step that was planned; `NO_STEP` when there was none."""
        return self._folder.newest()

    def get(self, step: int) -> StepPlan:
        """The plan of a step."""
        return decode_json(self._storage.read(self._folder.path(step)), StepPlan)

    def publish(self, step: int, plan: StepPlan) -> StepPlan:
        """Keep a plan unless there is one of this step; the one that holds.

        Raises
        ------
        StateError
            When the one that is there goes on from another step.
        """
        raw = self._storage.publish(self._folder.path(step), msgspec.json.encode(plan))
        step_plan = decode_json(raw, StepPlan)
        if step_plan.parent != plan.parent:
            raise StateError(
                f"{self._storage.place(self._folder.path(step))} is the plan of a step after step {step_plan.parent}, "
                f"but the log has committed step {plan.parent} last: two applications may share this checkpoint. "
                "Give each its own `application.id`."
            )
        self._folder.keep(step, oldest=plan.parent)
        return step_plan

"""`StepPlans`: the plans of steps, written to the checkpoint before a step runs, so that all attempts are the same."""

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
    """The state of a global table: the step that has loaded it, and the offsets up to which its topics were read."""

    step: int
    offsets: Offsets


class StepPlan(msgspec.Struct, frozen=True):
    """The decisions before a step runs.

    Parameters
    ----------
    parent : int
        The step before this one.
    now_ms : int
        The wall-clock time of the step.
    globals : mapping of int to GlobalTable
        By sub-topology: the state of its global table.
    behind : list of TopicPartition
        As for `Step`.
    ends : mapping
        The end offsets of the step.
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
        """Return the last planned step, or `NO_STEP`."""
        return self._folder.newest()

    def get(self, step: int) -> StepPlan:
        """Return the plan of a step."""
        return decode_json(self._storage.read(self._folder.path(step)), StepPlan)

    def publish(self, step: int, plan: StepPlan) -> StepPlan:
        """Write the plan of a step unless one exists, and return the plan that is stored.

        Raises
        ------
        StateError
            If the stored plan has another parent.
        """
        raw = self._storage.publish(self._folder.path(step), msgspec.json.encode(plan))
        step_plan = decode_json(raw, StepPlan)
        if step_plan.parent != plan.parent:
            raise StateError(
                f"{self._storage.location_of(self._folder.path(step))} is the plan of a step after step "
                f"{step_plan.parent}, but the log has committed step {plan.parent} last: two applications may share "
                "this checkpoint. Give each its own `application.id`."
            )
        self._folder.keep(step, oldest=plan.parent)
        return step_plan

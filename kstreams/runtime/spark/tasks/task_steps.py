"""`TaskSteps`: runs the steps of the task path: plan, global tables, chain of sub-topologies, manifest."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from kstreams.errors import StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.runtime.spark.exchange.reports import (
    TaskReport,
    raise_first,
    resting_tasks,
    taken_reports,
)
from kstreams.runtime.spark.exchange.rows import offsets_of, positions_of
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.steps import NO_STEP, AppliedStep, Step
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.tasks.global_tables import GlobalTableLoader
from kstreams.runtime.spark.tasks.manifests import Manifests, StepManifest, newest
from kstreams.runtime.spark.tasks.step_plans import StepPlan, StepPlans
from kstreams.runtime.spark.tasks.sub_topology_chain import SubTopologyChain


class TaskSteps:
    """The `StepExecutor` of the task path.

    Parameters
    ----------
    chain : SubTopologyChain
    storage : CheckpointStorage
        The checkpoint, which holds plans and manifests.
    global_tables : GlobalTableLoader
    program : Program
    clock : Clock
        Read once per step.
    bounded : bool
        True if the run ends where its input ends; no source is idle before that.
    """

    def __init__(
        self,
        chain: SubTopologyChain,
        storage: CheckpointStorage,
        global_tables: GlobalTableLoader,
        program: Program,
        clock: Clock,
        *,
        bounded: bool,
    ) -> None:
        self._chain = chain
        self._plans = StepPlans(storage)
        self._manifests = Manifests(storage, program.snapshot_every)  # state files reach at least as far back
        self._globals = global_tables
        self._program = program
        self._clock = clock
        self._bounded = bounded
        self._newest_plan: int | None = None
        self._resting = frozenset[str]()

    def run(self, step_input: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Run all tasks once; those of a cycle run in rounds."""
        step = step_input.number
        before = self._manifests.get(step_input.parent)
        before.require_tasks(self._program.tasks)
        plan = self._planned(step, before, step_input.ranges)
        loaded = self._globals.load(step, plan, before)
        behind = frozenset(plan.behind)
        rows = self._chain.outputs(
            step_input,
            Step(step, plan.now_ms, bool(step % 2), before.states | loaded, behind=behind, resting=self._resting),
        )
        reports = taken_reports(rows)
        raise_first(reports)
        states = newest([before.states | loaded, *(report.states for report in reports)])
        self._resting = resting_tasks(reports)
        applied = self._manifests.publish(StepManifest(step, step_input.parent, states, plan.globals))
        return rows, reports, applied

    def planned_ends(self, step: int, parent: AppliedStep) -> Mapping[TopicPartition, int] | None:
        """Return the end of a step that an interrupted attempt has planned; None for a new step.

        Raises
        ------
        StateError
            If a later step was planned: then the checkpoint belongs to another log.
        """
        if self._newest_plan is None:
            self._newest_plan = self._plans.newest()
        if self._newest_plan > step:
            parent_number = "none" if parent.number == NO_STEP else parent.number
            raise StateError(
                f"The checkpoint has the plan of step {self._newest_plan}, but the last step in the log is "
                f"{parent_number}: the checkpoint or the log was replaced. Run with --reset."
            )
        return positions_of(self._plans.get(step).ends) if self._newest_plan == step else None

    def _planned(self, step: int, before: StepManifest, ranges: OffsetRanges) -> StepPlan:
        ends = {source: end for source, (_, end) in ranges.items()}
        tables = self._globals.plan(step, before.globals)
        now_ms = self._clock.wall_ms()
        return self._plans.publish(step, StepPlan(before.step, now_ms, tables, self._behind(ends), offsets_of(ends)))

    def _behind(self, offsets: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """Return the partitions with records after these offsets; empty if no source has an idle timeout."""
        if not self._program.idle_sources:
            return []
        if self._bounded:
            return list(offsets)
        with HomeAddress.of(self._program.config).opened() as log, log.admin() as admin:
            ends = admin.end_offsets(list(offsets))
        return [source for source, offset in offsets.items() if ends[source] > offset]

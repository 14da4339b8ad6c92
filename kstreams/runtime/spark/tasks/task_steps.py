"""`TaskSteps`: the work of the steps on the task path: plan, global tables, then the chain of sub-topologies."""

from __future__ import annotations

from contextlib import ExitStack

import msgspec
from pyspark.sql import DataFrame

from kstreams.clock import Clock
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.output_topics import OutputTopics
from kstreams.runtime.spark.io.reports import TaskReport, taken_reports, written_records
from kstreams.runtime.spark.tasks.global_tables import GlobalTableLoader
from kstreams.runtime.spark.tasks.step_plans import StepPlan, StepPlans
from kstreams.runtime.spark.tasks.sub_topology_chain import StepInput, SubTopologyChain


class TaskSteps:
    """See `StepExecutor`.

    Parameters
    ----------
    chain : SubTopologyChain
    plans : StepPlans
    global_tables : GlobalTableLoader
    clock : Clock
        Asked once per step.
    """

    def __init__(
        self, chain: SubTopologyChain, plans: StepPlans, global_tables: GlobalTableLoader, clock: Clock
    ) -> None:
        self._chain, self._plans, self._globals, self._clock = chain, plans, global_tables, clock

    def run(
        self,
        step: int,
        parent: int,
        rows: DataFrame | None,
        ranges: OffsetRanges,
        output: OutputTopics,
        resources: ExitStack,
    ) -> tuple[DataFrame, list[TaskReport]]:
        """Run all tasks once, those that feed themselves round by round."""
        before = self._plans.get(parent)
        plan = self._planned(step, parent, before)
        made = self._chain.outputs(StepInput(rows, ranges, plan.step(step, before), output, resources))
        reports = taken_reports(made.reports)
        if made.rounds:
            self._plans.put(step, msgspec.structs.replace(plan, rounds=made.rounds))
        return made.rows, [*reports, self._read_past_tasks(reports, ranges)]

    def _read_past_tasks(self, reports: list[TaskReport], ranges: OffsetRanges) -> TaskReport:
        """What sub-topologies without tasks have read of what was written within the step."""
        written, external = written_records(reports), {source.topic for source in ranges}
        return TaskReport(records_in=sum(written[topic] for topic in self._chain.past_tasks if topic not in external))

    def _planned(self, step: int, parent: int, before: StepPlan | None) -> StepPlan:
        known = self._plans.get(step)
        tables = {} if before is None else before.globals
        if known is None or known.parent != parent:
            known = StepPlan(parent, self._clock.now_ms(), self._globals.plan(step, tables))
            self._plans.put(step, known)
        self._globals.load(step, known.globals, tables, known.now_ms)
        return known

"""`TaskSteps`: the work of the steps on the task path: plan, global tables, then the chain of sub-topologies."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import msgspec
from pyspark.sql import DataFrame

from kstreams.batch import TopicPartition
from kstreams.clock import Clock
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.output_topics import OutputTopics
from kstreams.runtime.spark.io.reports import TaskReport, taken_reports, written_records
from kstreams.runtime.spark.io.source import log_at
from kstreams.runtime.spark.program import Program
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
    program : Program
    clock : Clock
        Asked once per step.
    bounded : bool
        Whether the run ends where its input ends; until then nothing is idle.
    """

    def __init__(
        self,
        chain: SubTopologyChain,
        plans: StepPlans,
        global_tables: GlobalTableLoader,
        program: Program,
        clock: Clock,
        *,
        bounded: bool,
    ) -> None:
        self._chain, self._plans, self._globals = chain, plans, global_tables
        self._program, self._clock, self._bounded = program, clock, bounded

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
        plan = self._planned(step, parent, before, ranges)
        made = self._chain.outputs(StepInput(rows, ranges, plan.step(step, before), output, resources))
        reports = taken_reports(made.reports)
        if made.rounds:
            self._plans.put(step, msgspec.structs.replace(plan, rounds=made.rounds))
        return made.rows, [*reports, self._read_past_tasks(reports, ranges)]

    def _read_past_tasks(self, reports: list[TaskReport], ranges: OffsetRanges) -> TaskReport:
        """What sub-topologies without tasks have read of what was written within the step."""
        written, external = written_records(reports), {source.topic for source in ranges}
        return TaskReport(records_in=sum(written[topic] for topic in self._chain.past_tasks if topic not in external))

    def _planned(self, step: int, parent: int, before: StepPlan | None, ranges: OffsetRanges) -> StepPlan:
        known = self._plans.get(step)
        tables = {} if before is None else before.globals
        if known is None or known.parent != parent:
            behind = self._behind({source: end for source, (_, end) in ranges.items()})
            known = StepPlan(parent, self._clock.now_ms(), self._globals.plan(step, tables), behind)
            self._plans.put(step, known)
        self._globals.load(step, known.globals, tables, known.now_ms)
        return known

    def _behind(self, reached: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """The partitions that go on behind what the steps have reached; where no input is ever idle, nobody asks."""
        if not self._program.idle_sources:
            return []
        if self._bounded:
            return list(reached)
        with log_at(self._program.home).admin() as admin:
            ends = admin.end_offsets(list(reached))
        return [source for source, at in reached.items() if ends[source] > at]

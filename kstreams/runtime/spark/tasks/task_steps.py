"""`TaskSteps`: the work of the steps on the task path: plan, global tables, then the chain of sub-topologies."""

from __future__ import annotations

from contextlib import ExitStack

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from kstreams.clock import Clock
from kstreams.runtime.spark.io.from_log import count_records
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.reports import TaskReport, split_reports
from kstreams.runtime.spark.tasks.global_tables import GlobalTableLoader
from kstreams.runtime.spark.tasks.step_plans import StepPlan, StepPlans
from kstreams.runtime.spark.tasks.sub_topology_chain import SubTopologyChain


class TaskSteps:
    """See `Work`.

    Parameters
    ----------
    chain : SubTopologyChain
    plans : StepPlans
    global_tables : GlobalTableLoader
    home : str
    clock : Clock
        Asked once per step.
    """

    def __init__(
        self, chain: SubTopologyChain, plans: StepPlans, global_tables: GlobalTableLoader, home: str, clock: Clock
    ) -> None:
        self._chain, self._plans, self._globals = chain, plans, global_tables
        self._home, self._clock = home, clock

    def run(
        self, step: int, parent: int, rows: DataFrame | None, ranges: OffsetRanges
    ) -> tuple[pa.Table, list[TaskReport]]:
        """Run all tasks once, those that feed themselves round by round."""
        before = self._plans.get(parent)
        plan = self._planned(step, parent, before)
        with ExitStack() as resources:
            written, rounds = self._chain.outputs(rows, ranges, plan.step(step, before), resources)
            table, reports = split_reports(written.toArrow())
        if rounds:
            self._plans.put(step, msgspec.structs.replace(plan, rounds=rounds))
        return table, [*reports, self._read_past_tasks(table, ranges)]

    def _read_past_tasks(self, table: pa.Table, ranges: OffsetRanges) -> TaskReport:
        """What sub-topologies without tasks have read: from the log, and of what was written within the step."""
        topics, external = self._chain.past_tasks, {source.topic for source in ranges}
        within = sum(pc.sum(pc.equal(table["topic"], topic)).as_py() or 0 for topic in topics if topic not in external)
        return TaskReport(records_in=count_records(self._home, topics, ranges) + within)

    def _planned(self, step: int, parent: int, before: StepPlan | None) -> StepPlan:
        known = self._plans.get(step)
        tables = {} if before is None else before.globals
        if known is None or known.parent != parent:
            known = StepPlan(parent, self._clock.now_ms(), self._globals.plan(step, tables))
            self._plans.put(step, known)
        self._globals.load(step, known.globals, tables, known.now_ms)
        return known

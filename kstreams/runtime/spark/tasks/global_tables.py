"""`GlobalTableLoader`: reads the topics of each global table in one task, whose state files all workers read.

State files hold a table as of a step even if its topic is compacted later, so that the step can run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA
from kstreams.runtime.spark.exchange.reports import TaskReport, raise_first, taken_reports
from kstreams.runtime.spark.exchange.rows import offsets_of, positions_of
from kstreams.runtime.spark.io.control_blocks import ControlBlocks
from kstreams.runtime.spark.io.offset_ranges import OffsetRange
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.output_topics import NoTopics
from kstreams.runtime.spark.io.source import TopicReader
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.steps import NO_STEP, StateVersion, Step
from kstreams.runtime.spark.tasks.manifests import StepManifest, newest
from kstreams.runtime.spark.tasks.step_plans import GlobalTable, StepPlan
from kstreams.runtime.spark.tasks.task_run import tasks_in_arrow

RunTask = Callable[[int, Sequence[OffsetRange], Step], list[TaskReport]]
"""Runs the only task of a sub-topology on these records; the task writes to no topic."""


def on_an_executor(session: SparkSession, packed: bytes) -> RunTask:
    """Return a function that runs each task of a packed program as a Spark job."""

    def run(number: int, ranges: Sequence[OffsetRange], step: Step) -> list[TaskReport]:
        task = tasks_in_arrow(packed, number, step, NoTopics, [ranges])
        return taken_reports(ControlBlocks(session).of(1, 1).mapInArrow(task, BLOCK_SCHEMA))

    return run


class GlobalTableLoader:
    """The global tables of an application.

    Their topics are read to the end before each step, regardless of the maximum number of rows of a step.

    Parameters
    ----------
    program : Program
    run : callable
        Runs the task of a table.
    """

    def __init__(self, program: Program, run: RunTask) -> None:
        self._program = program
        self._run = run
        self._subs = [sub for sub in program.sub_topologies if sub.is_global]

    def plan(self, step: int, before: dict[int, GlobalTable]) -> dict[int, GlobalTable]:
        """Return the end offsets of each table for a step. A table whose topics have not grown keeps its state."""
        return {sub.id: self._plan(sub, step, before.get(sub.id)) for sub in self._subs}

    def load(self, step: int, plan: StepPlan, before: StepManifest) -> dict[str, StateVersion]:
        """Load the tables whose topics have grown up to the planned offsets, and return their state versions."""
        loaded: dict[str, StateVersion] = {}
        for sub in self._subs:
            if plan.globals[sub.id].step == step:
                last = before.globals.get(sub.id, GlobalTable(NO_STEP, {}))
                table_step = Step(step, plan.now_ms, states=before.states).only([sub.id])
                reports = self._run(sub.id, self._ranges(sub, last, plan.globals[sub.id]), table_step)
                raise_first(reports)
                loaded |= newest(report.states for report in reports)
        return loaded

    def _plan(self, sub: SubTopology, step: int, before: GlobalTable | None) -> GlobalTable:
        end = offsets_of(self._topics(sub).end())
        return before if before is not None and before.offsets == end else GlobalTable(step, end)

    def _ranges(self, sub: SubTopology, last: GlobalTable, target: GlobalTable) -> list[OffsetRange]:
        start = self._topics(sub).beginning() | positions_of(last.offsets)
        ends = positions_of(target.offsets)
        return [OffsetRange(*source, start[source], end) for source, end in ends.items() if end > start[source]]

    def _topics(self, sub: SubTopology) -> TopicReader:
        return TopicReader(HomeAddress.of(self._program.config), self._program.inputs[sub.id], 1 << 60)

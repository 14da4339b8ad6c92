"""Global tables on Spark: one task reads what their topics hold, on an executor; all workers read the state it wrote.

State files keep a table as it was for a step, whatever compaction does to its topic: so a step may run again.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.spark.io.control_rows import control_rows
from kstreams.runtime.spark.io.offset_ranges import OffsetRange
from kstreams.runtime.spark.io.output_topics import NoTopics
from kstreams.runtime.spark.io.reports import raise_first, taken_reports
from kstreams.runtime.spark.io.rows import OUT_SCHEMA, offsets_of, positions_of
from kstreams.runtime.spark.io.source import TopicReader
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.steps import NO_STEP, Step
from kstreams.runtime.spark.tasks.step_plans import GlobalTable
from kstreams.runtime.spark.tasks.task_run import tasks_in_arrow


class GlobalTableLoader:
    """The global tables of an application.

    They are read to the end of their topics before each step, independent of how many rows the step takes.

    Parameters
    ----------
    session : SparkSession
    program : Program
    packed : bytes
        The same program, packed for the workers.
    """

    def __init__(self, session: SparkSession, program: Program, packed: bytes) -> None:
        self._session, self._program, self._packed = session, program, packed
        self._subs = [sub for sub in program.sub_topologies if sub.is_global]

    def plan(self, step: int, before: dict[int, GlobalTable]) -> dict[int, GlobalTable]:
        """How far to read each table for a step; a table whose topics have not grown stays at its state."""
        return {sub.id: self._plan(sub, step, before.get(sub.id)) for sub in self._subs}

    def load(self, step: int, wanted: dict[int, GlobalTable], before: dict[int, GlobalTable], now_ms: int) -> None:
        """Have the tables brought to the state that is wanted; does nothing twice."""
        for sub in self._subs:
            if wanted[sub.id].step == step:
                last = before.get(sub.id, GlobalTable(NO_STEP, {}))
                task = tasks_in_arrow(self._packed, sub.id, Step(step, last.step, now_ms), NoTopics)
                read = control_rows(self._session, [self._ranges(sub, last, wanted[sub.id])], 1)
                raise_first(taken_reports(read.mapInArrow(task, OUT_SCHEMA)))

    def _plan(self, sub: SubTopology, step: int, before: GlobalTable | None) -> GlobalTable:
        end = offsets_of(self._topics(sub).end())
        return before if before is not None and before.offsets == end else GlobalTable(step, end)

    def _ranges(self, sub: SubTopology, last: GlobalTable, wanted: GlobalTable) -> list[OffsetRange]:
        start = self._topics(sub).beginning() | positions_of(last.offsets)
        ends = positions_of(wanted.offsets)
        return [OffsetRange(*source, start[source], end) for source, end in ends.items() if end > start[source]]

    def _topics(self, sub: SubTopology) -> TopicReader:
        return TopicReader(self._program.home, self._program.inputs[sub.id], 1 << 60)

"""Global tables on Spark: the driver runs their tasks over what their topics hold, workers read the state it wrote."""

from __future__ import annotations

from collections.abc import Iterator

from kstreams.batch import Batch
from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.spark.io.reports import raise_first, split_reports
from kstreams.runtime.spark.io.rows import offsets_of, positions_of, table_of
from kstreams.runtime.spark.io.source import TopicReader
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.steps import NO_STEP, Step
from kstreams.runtime.spark.tasks.step_plans import GlobalTable
from kstreams.runtime.spark.tasks.task_run import run_task


class GlobalTableLoader:
    """The global tables of an application.

    They are read to the end of their topics before each step, independent of how many rows the step takes.

    Parameters
    ----------
    program : Program
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._subs = [sub for sub in program.sub_topologies if sub.is_global]

    def plan(self, step: int, before: dict[int, GlobalTable]) -> dict[int, GlobalTable]:
        """How far to read each table for a step; a table whose topics have not grown stays at its state."""
        return {sub.id: self._plan(sub, step, before.get(sub.id)) for sub in self._subs}

    def load(self, step: int, wanted: dict[int, GlobalTable], before: dict[int, GlobalTable], now_ms: int) -> None:
        """Bring the tables to the state that is wanted; does nothing twice."""
        for sub in self._subs:
            if wanted[sub.id].step == step:
                last = before.get(sub.id, GlobalTable(NO_STEP, {}))
                batches = self._batches(sub, last, wanted[sub.id])
                given = table_of(run_task(self._program, sub, 0, Step(step, last.step, now_ms), batches))
                raise_first(split_reports(given)[1])  # else only its state matters

    def _plan(self, sub: SubTopology, step: int, before: GlobalTable | None) -> GlobalTable:
        end = offsets_of(self._topics(sub).end())
        return before if before is not None and before.offsets == end else GlobalTable(step, end)

    def _batches(self, sub: SubTopology, last: GlobalTable, wanted: GlobalTable) -> Iterator[Batch]:
        topics = self._topics(sub)
        start = topics.beginning() | positions_of(last.offsets)
        for rows in topics.partitions_between(start, positions_of(wanted.offsets)):
            yield from topics.read(rows)

    def _topics(self, sub: SubTopology) -> TopicReader:
        return TopicReader(self._program.home, self._program.inputs[sub.id], 1 << 60)

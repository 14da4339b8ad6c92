"""Global tables on Spark: the driver runs their tasks over what their topics hold, workers read the state it wrote."""

from __future__ import annotations

import pyarrow as pa

from kstreams.processor.topology import SubTopology
from kstreams.runtime.spark.program import Program, Step
from kstreams.runtime.spark.rows import ARROW_OUT_SCHEMA, offsets_of, positions_of
from kstreams.runtime.spark.source import Topics
from kstreams.runtime.spark.state_files import NO_STEP
from kstreams.runtime.spark.steps import GlobalTable
from kstreams.runtime.spark.task_run import run_task


class GlobalTables:
    """The global tables of an application.

    They are read to the end of their topics before each step, independent of how many rows the step takes.

    Parameters
    ----------
    program : Program
    log_dir : str
        Folder of the embedded log.
    """

    def __init__(self, program: Program, log_dir: str) -> None:
        self._program, self._log_dir = program, log_dir
        self._subs = [sub for sub in program.sub_topologies if sub.is_global]

    def plan(self, step: int, before: dict[int, GlobalTable]) -> dict[int, GlobalTable]:
        """How far to read each table for a step; a table whose topics have not grown stays at its state."""
        return {sub.id: self._plan(sub, step, before.get(sub.id)) for sub in self._subs}

    def load(self, step: int, wanted: dict[int, GlobalTable], before: dict[int, GlobalTable], now_ms: int) -> None:
        """Bring the tables to the state that is wanted; does nothing twice."""
        for sub in self._subs:
            if wanted[sub.id].step == step:
                last = before.get(sub.id, GlobalTable(NO_STEP, {}))
                rows = self._rows(sub, last, wanted[sub.id])
                for _ in run_task(self._program, sub, 0, Step(step, last.step, now_ms), rows):
                    pass  # only its state matters

    def _plan(self, sub: SubTopology, step: int, before: GlobalTable | None) -> GlobalTable:
        end = offsets_of(self._topics(sub).end())
        return before if before is not None and before.offsets == end else GlobalTable(step, end)

    def _rows(self, sub: SubTopology, last: GlobalTable, wanted: GlobalTable) -> pa.Table:
        topics = self._topics(sub)
        start = topics.beginning() | positions_of(last.offsets)
        spans = topics.between(start, positions_of(wanted.offsets))
        batches = [batch.append_column("origin", _zeros(batch)) for span in spans for batch in topics.read(span)]
        return pa.Table.from_batches([batch.cast(ARROW_OUT_SCHEMA) for batch in batches], schema=ARROW_OUT_SCHEMA)

    def _topics(self, sub: SubTopology) -> Topics:
        return Topics(self._log_dir, self._program.inputs[sub.id], 1 << 60)


def _zeros(batch: pa.RecordBatch) -> pa.Array:
    return pa.repeat(pa.scalar(0, pa.int64()), len(batch))

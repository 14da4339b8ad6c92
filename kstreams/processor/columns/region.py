"""`Region`: the live columns behind one source of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.batch import Batch
from kstreams.errors import SerdeError
from kstreams.expressions.exactness import Inexact
from kstreams.processor.columns.evaluation import Evaluation
from kstreams.processor.columns.fold_target import FoldTarget
from kstreams.processor.columns.plan import Plan, Target, plan_regions
from kstreams.processor.columns.selection import Selected
from kstreams.processor.columns.sink_target import SinkTarget
from kstreams.processor.columns.source_columns import SourceColumns
from kstreams.processor.columns.windowing import stream_times
from kstreams.processor.context import Run, TaskContext
from kstreams.processor.nodes import Sink, SubTopology
from kstreams.processor.outputs import Outputs

LiveTarget: TypeAlias = SinkTarget | FoldTarget


class Region:
    """Takes batches of one source as columns; the caller falls back to records when it refuses one.

    Parameters
    ----------
    plan : Plan
        What to do.
    sub_topology : SubTopology
        Tells which stores others read.
    context : TaskContext
        Of the task.
    outputs : Outputs
        Of the task.
    lives : mapping of str to object
        What the bound operators share, by the name of their step.
    """

    def __init__(
        self,
        plan: Plan,
        sub_topology: SubTopology,
        context: TaskContext,
        outputs: Outputs,
        lives: Mapping[str, Any],
    ) -> None:
        self._columns = SourceColumns(plan.source, plan.leaves)
        expressions = [expr for target in plan.targets for expr in target.expressions]
        self._evaluation = Evaluation(expressions)
        self._context = context
        self._ways = [(target, _live(target, plan, sub_topology, context, outputs, lives)) for target in plan.targets]
        self._takes_headers = all(live.takes_headers for _, live in self._ways)
        self._min_rows = context.config["columns.min.rows"]

    def process(self, batch: Batch) -> bool:
        """Process a whole batch; False when it must go the record path, with nothing done yet but `settle`."""
        if len(batch) < self._min_rows or (batch.headers is not None and not self._takes_headers):
            self.settle()
            return False
        try:
            columns = self._evaluation.compute(self._columns.decode(batch))
            prepared = [live.prepare(Selected(batch, columns, target.view.where)) for target, live in self._ways]
        except (Inexact, SerdeError, pa.ArrowException, OverflowError):
            # The record path finds the record that is to blame, or computes what columns cannot.
            self.settle()
            return False
        self._act(batch, prepared)
        return True

    def _act(self, batch: Batch, prepared: list[Callable[[], None]]) -> None:
        context, times = self._context, batch.timestamps.to_numpy()
        # Without timestamps left to loop over, the run stands at its last record.
        context.run = Run(batch.source.topic, batch.offsets, stream_times(times, context.stream_time), [])
        for act in prepared:
            act()

    def settle(self) -> None:
        """Bring the stores up to all that was processed: before a flush, and before anybody else looks at them."""
        for _, live in self._ways:
            live.settle()


def _live(
    target: Target,
    plan: Plan,
    sub_topology: SubTopology,
    context: TaskContext,
    outputs: Outputs,
    lives: Mapping[str, Any],
) -> LiveTarget:
    if isinstance(target.node, Sink):
        return SinkTarget(target, plan.source, outputs)
    stores = set(target.node.stores)
    others = [node for node in sub_topology.nodes if node.name != target.node.name]
    shared = any(stores & set(getattr(node, "stores", ())) for node in others)
    return FoldTarget(target, lives[target.node.name], context, waits=not shared)


def live_regions(
    sub_topology: SubTopology, context: TaskContext, outputs: Outputs, lives: Mapping[str, Any]
) -> dict[str, Region]:
    """The regions of one task, by the name of the source where each begins."""
    plans = plan_regions(sub_topology, caching=context.caching)
    return {
        name: Region(plan, sub_topology, context, outputs, lives)
        for name, plan in plans.items()
        if isinstance(plan, Plan) and not context.follows_time
    }

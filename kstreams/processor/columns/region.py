"""`Region`: the live columns behind one source of a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.batch import Batch
from kstreams.errors import SerdeError
from kstreams.expressions.exactness import Inexact
from kstreams.processor.columns.evaluation import Evaluation
from kstreams.processor.columns.fold_target import FoldTarget
from kstreams.processor.columns.plan import Plan, Target
from kstreams.processor.columns.selection import Selected
from kstreams.processor.columns.sink_target import SinkTarget
from kstreams.processor.columns.source_columns import SourceColumns
from kstreams.processor.nodes import Sink, SubTopology
from kstreams.processor.outputs import Outputs

FEWEST_ROWS = 500
"""Smaller batches go the record path: what a batch costs in columns, whatever its size, is what so many records cost."""

LiveTarget: TypeAlias = SinkTarget | FoldTarget


class Region:
    """Takes batches of one source as columns; the caller falls back to records when it refuses one.

    Parameters
    ----------
    plan : Plan
        What to do.
    sub_topology : SubTopology
        Tells which stores others read.
    outputs : Outputs
        Of the task.
    lives : mapping of str to object
        What the bound operators share, by the name of their step.
    fewest_rows : int
        Batches with less are refused.
    """

    def __init__(
        self,
        plan: Plan,
        sub_topology: SubTopology,
        outputs: Outputs,
        lives: Mapping[str, Any],
        fewest_rows: int = FEWEST_ROWS,
    ) -> None:
        self._columns = SourceColumns(plan.source, plan.leaves)
        expressions = [expr for target in plan.targets for expr in target.expressions]
        self._evaluation = Evaluation(expressions, plan.schema)
        self._ways = [(target, _live(target, plan, sub_topology, outputs, lives)) for target in plan.targets]
        self._takes_headers = all(live.takes_headers for _, live in self._ways)
        self._fewest_rows = fewest_rows

    def process(self, batch: Batch) -> bool:
        """Process a whole batch; False when it must go the record path, with nothing done yet but `settle`."""
        if len(batch) < self._fewest_rows or (batch.headers is not None and not self._takes_headers):
            self.settle()
            return False
        try:
            columns = self._evaluation.compute(self._columns.decode(batch))
            prepared = [live.prepare(Selected(batch, columns, target.view.where)) for target, live in self._ways]
        except (Inexact, SerdeError, pa.ArrowException, OverflowError, ValueError, TypeError):
            # The record path finds the record that is to blame, or computes what columns cannot.
            self.settle()
            return False
        for act in prepared:
            act()
        return True

    def settle(self) -> None:
        """Bring the stores up to all that was processed: before a flush, and before anybody else looks at them."""
        for _, live in self._ways:
            live.settle()


def _live(
    target: Target, plan: Plan, sub_topology: SubTopology, outputs: Outputs, lives: Mapping[str, Any]
) -> LiveTarget:
    if isinstance(target.node, Sink):
        return SinkTarget(target, plan.source, outputs)
    stores = set(target.node.stores)
    others = [node for node in sub_topology.nodes if node.name != target.node.name]
    shared = any(stores & set(getattr(node, "stores", ())) for node in others)
    return FoldTarget(target, lives[target.node.name], waits=not shared)

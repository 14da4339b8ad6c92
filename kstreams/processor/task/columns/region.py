"""`Region`: the live column region after one source of a task."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import SerdeError
from kstreams.expressions.exactness import Inexact
from kstreams.kernel.batch import Batch
from kstreams.processor.columns.evaluation import Evaluation
from kstreams.processor.columns.forms import SessionForm
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.columns.source_columns import Columns, SourceColumns
from kstreams.processor.columns.target import Target, batch_of
from kstreams.processor.columns.windowing import stream_times
from kstreams.processor.context.column_handle import ColumnHandles
from kstreams.processor.context.record_cursor import RecordCursor
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.operators.aggregation.columns import AggregateTarget
from kstreams.processor.operators.aggregation.live_aggregation import AggregateHandle, LiveAggregation
from kstreams.processor.operators.joins.lookup_join import LiveLookup, LookupHandle
from kstreams.processor.operators.map_batch.rows import BatchedRecords, BatchTarget
from kstreams.processor.operators.session.columns import SessionTarget
from kstreams.processor.task.columns.edge_counts import EdgeCounts
from kstreams.processor.task.columns.exit_target import ExitTarget
from kstreams.processor.task.columns.plan import ColumnPlan, plan_regions
from kstreams.processor.task.columns.sink_target import SinkTarget
from kstreams.processor.task.outputs import OutputBuffers
from kstreams.processor.topology.nodes import SinkNode, SourceNode, SubTopology
from kstreams.processor.topology.operator import Forward

LARGEST_SHARE = 1 / 2
"""The largest share of records that may pass. On JSON, a share of 0.1 halves the time; a share of 1 adds a quarter."""

_BATCHES_BY_RECORD = 16
"""Batches that go by record before columns are tried again: a failed try costs about a third of a batch."""


class EarlyFilter:
    """A measure of the records that pass a region: it decides whether columns save time.

    Examples
    --------
    >>> early = EarlyFilter()
    >>> early.pays(leaving=10, of=100), early.pays(leaving=90, of=100)
    (True, False)
    >>> sum(early.rests() for _ in range(100))
    16
    """

    __slots__ = ("_remaining_batches",)

    def __init__(self) -> None:
        self._remaining_batches = 0

    def rests(self) -> bool:
        """Return whether the next batch goes by record."""
        self._remaining_batches = max(0, self._remaining_batches - 1)
        return self._remaining_batches > 0

    def pays(self, leaving: int, of: int) -> bool:
        """Return whether columns save time if `leaving` rows of a batch of `of` rows leave the region."""
        self._remaining_batches = 0 if leaving <= LARGEST_SHARE * of else _BATCHES_BY_RECORD + 1
        return self._remaining_batches == 0


LiveTarget: TypeAlias = SinkTarget | AggregateTarget | SessionTarget | BatchTarget | ExitTarget


class RegionParts(NamedTuple):
    """The parts of a task that a region uses; `forwards` are the closures of its operators by name."""

    sub_topology: SubTopology
    context: TaskContext
    outputs: OutputBuffers
    handles: ColumnHandles
    forwards: Mapping[str, Forward]


class Region:
    """The columns of the operators after one source; a refused batch is processed record by record.

    Parameters
    ----------
    plan : ColumnPlan
    task : RegionParts
    """

    def __init__(self, plan: ColumnPlan, task: RegionParts) -> None:
        self._columns = SourceColumns(plan.source, plan.leaves)
        self._counts = EdgeCounts(plan.edges, task.context.forwarded)
        computed = [expr for target in plan.targets for expr in target.expressions]
        self._evaluation = Evaluation([*computed, *self._counts.expressions])
        self._lookups = [
            LiveLookup(lookup, plan.leaves, task.handles.of(lookup.step, LookupHandle).get_values)
            for lookup in plan.lookups
        ]
        self._current = task.context.current
        self._paths = [(target, _live(target, plan.source, task)) for target in plan.targets]
        self._dropped = [expr for target in plan.targets for expr in target.view.dropped]
        settings = task.context.application.settings
        is_traced = settings.trace_records != "none"
        self._takes_headers = not is_traced and all(live.takes_headers for _, live in self._paths)
        self._early_filter = EarlyFilter() if plan.only_filters else None
        self._min_rows = sys.maxsize if settings.trace_records == "all" else settings.columns_min_rows

    def process(self, batch: Batch) -> bool:
        """Process a whole batch. If it must go by record, return False; only `complete` was called then."""
        prepared = None if self._declines(batch) else self._prepared(batch)
        if prepared is None:
            self.complete()
            return False
        self._act(batch, prepared)
        return True

    def _declines(self, batch: Batch) -> bool:
        if len(batch) < self._min_rows or (batch.headers is not None and not self._takes_headers):
            return True
        return self._early_filter is not None and self._early_filter.rests()

    def _prepared(self, batch: Batch) -> list[Callable[[], None]] | None:
        """Return the actions for each path; None if the batch must be processed by record, or is faster by record."""
        try:
            columns = self._evaluation.compute(self._looked_up(self._columns.decode(batch)))
            if self._drops_some(columns):
                return None
            paths = [(live, SelectedRows(batch, columns, target.view.where)) for target, live in self._paths]
            if self._early_filter is not None and not self._early_filter.pays(
                sum(len(rows) for _, rows in paths), len(batch)
            ):
                return None
            return [*(live.prepare(rows) for live, rows in paths), self._counts.prepare(batch, columns)]
        except (Inexact, SerdeError, pa.ArrowException, OverflowError):
            return None  # the record path names the bad record, or computes what columns cannot

    def _looked_up(self, columns: Columns) -> Columns:
        for lookup in self._lookups:
            columns = lookup.add(columns)
        return columns

    def _drops_some(self, columns: Columns) -> bool:
        """Return whether an operator drops records; the record path counts each of them."""
        return any(pc.any(columns[repr(dropped)]).as_py() for dropped in self._dropped)

    def _act(self, batch: Batch, prepared: list[Callable[[], None]]) -> None:
        current = self._current
        times = batch.timestamps.to_numpy()
        reached = stream_times(batch.places, current.reached)
        # A cursor without timestamps is at its last record.
        at_end = RecordCursor(batch, batch.offsets, stream_times(times, current.stream_time), [])
        for act in prepared:
            current.move_to(at_end)
            act()
        current.move_to(at_end)
        current.reached = int(reached[-1])

    def complete(self) -> None:
        """Complete the updates of stores by processed records: before a flush, and before others read the stores."""
        for _, live in self._paths:
            live.complete()


def _live(target: Target, source: SourceNode, task: RegionParts) -> LiveTarget:
    node = target.node
    if target.leaves_since is not None:
        follows_time = task.outputs.follows_time
        return ExitTarget(target, source, task.forwards[node.name], task.context.current, follows_time=follows_time)
    if isinstance(node, SinkNode):
        return SinkTarget(target, source, task.outputs, task.context.current)
    if batch_of(node) is not None:
        return BatchTarget(target, source, task.handles.of(node.name, BatchedRecords), task.context.current)
    if isinstance(node.columns, SessionForm):
        return SessionTarget(target, task.handles.of(node.name, LiveAggregation))
    other_nodes = [other for other in task.sub_topology.nodes if other.name != node.name]
    shared = any(set(node.stores) & set(getattr(other, "stores", ())) for other in other_nodes)
    return AggregateTarget(target, task.handles.of(node.name, AggregateHandle), task.context, waits=not shared)


def live_regions(task: RegionParts) -> dict[str, Region]:
    """Return the regions of one task, by the name of the source."""
    plans = plan_regions(task.sub_topology, caching=task.context.application.settings.caching)
    return {name: Region(plan, task) for name, plan in plans.items() if isinstance(plan, ColumnPlan)}

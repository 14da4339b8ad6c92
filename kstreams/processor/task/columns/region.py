"""`Region`: the live column region after one source of a task.

Each path through it ends at a target: a sink (`SinkTarget`), an aggregation, a function over batches, or an operator
that takes records one by one (`ExitTarget`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import SerdeError
from kstreams.expressions import Expr, Operation
from kstreams.expressions.exactness import Inexact
from kstreams.kernel.batch import Batch
from kstreams.kernel.timestamps import stream_times
from kstreams.processor.columns.forms import SessionForm
from kstreams.processor.columns.projection import Target, batch_of
from kstreams.processor.columns.selected_rows import ProjectedRows, SelectedRows
from kstreams.processor.columns.source_columns import Columns, Evaluation, SourceColumns, is_struct
from kstreams.processor.context.current_record import CurrentRecord, RecordCursor
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.context.forwarded import ForwardedCounts
from kstreams.processor.context.operator_context import ColumnHandles, TaskContext
from kstreams.processor.operators.aggregation.columns import AggregateTarget
from kstreams.processor.operators.aggregation.live_aggregation import AggregateHandle, LiveAggregation
from kstreams.processor.operators.joins.lookup_join import LiveLookup, LookupHandle
from kstreams.processor.operators.map_batch.rows import BatchBuffer, BatchTarget
from kstreams.processor.operators.session.columns import SessionTarget
from kstreams.processor.task.columns.plan import ColumnPlan, GraphEdge, plan_regions
from kstreams.processor.task.outputs import OutputBuffers, unframed
from kstreams.processor.task.record_loop import run_plain, run_with_headers
from kstreams.processor.topology.nodes import SinkNode, SourceNode, SubTopology
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers
from kstreams.serdes import BytesSerde, Serde


class SinkTarget:
    """The end of a path through a region at a sink.

    Parameters
    ----------
    target : Target
        The columns that arrive at the sink.
    source : SourceNode
        The source of the region.
    outputs : OutputBuffers
    current : CurrentRecord
        The current record of the task.
    """

    takes_headers = True

    def __init__(self, target: Target, source: SourceNode, outputs: OutputBuffers, current: CurrentRecord) -> None:
        sink = target.node
        assert isinstance(sink, SinkNode)
        self._sink = sink
        self._view = target.view
        self._outputs = outputs
        self._current = current
        self._merges = outputs.merges(str(sink.topic))
        self._key = sink.key or BytesSerde()
        self._value = sink.value or BytesSerde()
        self._is_opaque = (source.value or BytesSerde()).arrow_type is None
        self._rows = ProjectedRows(self._view, source)
        self._write_fields = None
        if is_struct(self._view.value):
            self._write_fields = self._value.field_writer(self._view.value_class, self._view.value.detail)

    def prepare(self, selected: SelectedRows) -> Callable[[], None]:
        """Encode the arriving columns; the returned function hands them over. Raises if a value does not encode."""
        topic = str(self._sink.topic)
        columns = unframed(
            self._sink,
            EncodedRows(self._keys(selected), self._values(selected), selected.of_timestamps(), selected.headers()),
        )
        if not self._outputs.accepts_columns(topic, columns):
            raise Inexact("a record that its topic refuses")
        reached = selected.reached(self._current.reached) if self._merges else None
        ranks = selected.ranks()
        return lambda: self._outputs.send_columns(topic, columns, reached, ranks)

    def complete(self) -> None:
        """Do nothing: no rows are buffered."""

    def _keys(self, selected: SelectedRows) -> pa.Array:
        if is_struct(self._view.key):
            return self._key.encode_rows(self._rows.keys(selected))
        return _encoded(self._key, selected.of(self._view.key))

    def _values(self, selected: SelectedRows) -> pa.Array:
        if self._write_fields is not None:
            fields = zip(self._view.value.detail, self._view.value.inputs, strict=True)
            return self._write_fields({name: selected.of(part) for name, part in fields})
        if is_struct(self._view.value) or (self._view.value.operation is Operation.VALUE and self._is_opaque):
            return self._value.encode_rows(self._rows.values(selected))
        return _encoded(self._value, selected.of(self._view.value))


def _encoded(serde: Serde, column: pa.Array) -> pa.Array:
    if column.type == serde.arrow_type:
        return serde.encode_column(column)
    return serde.encode_rows(column.to_pylist())


class ExitTarget:
    """The end of a path through a region, where records are forwarded one by one.

    Parameters
    ----------
    target : Target
        The columns that arrive, and the next step.
    source : SourceNode
        The source of the region.
    forward : callable
        The closure of the next step.
    current : CurrentRecord
        The current record, which is set for the following operators.
    follows_time : bool
        True if the progress of the task is updated per record (`CurrentRecord.reached`).
    """

    takes_headers = True

    def __init__(
        self, target: Target, source: SourceNode, forward: Forward, current: CurrentRecord, *, follows_time: bool
    ) -> None:
        self._rows = ProjectedRows(target.view, source)
        self._forward = forward
        self._current = current
        self._follows_time = follows_time

    def prepare(self, selected: SelectedRows) -> Callable[[], None]:
        """Create the rows; the returned function forwards them, depth first and in order. Raises if a row does not
        decode.
        """
        keys = self._rows.keys(selected)
        values = self._rows.values(selected)
        headers = selected.header_rows()
        stream_times = selected.stream_times(self._current.stream_time)
        cursor = RecordCursor(selected.batch, selected.offsets(), stream_times, selected.times().tolist())
        rows: Iterable[object] = zip(keys, values, cursor.timestamps, strict=False)
        if self._follows_time:
            rows = self._current.with_progress(rows, selected.reached(self._current.reached), selected.ranks())
        return lambda: self._run(cursor, rows, headers)

    def _run(self, cursor: RecordCursor, rows: Iterable[object], headers: list[Headers] | None) -> None:
        current = self._current
        current.move_to(cursor)
        if headers is None:
            run_plain(self._forward, rows)
        else:
            run_with_headers(current, self._forward, rows, headers)

    def complete(self) -> None:
        """Do nothing: no rows are buffered."""


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


class EdgeCounts:
    """The counters of the rows of each batch that pass each edge.

    Parameters
    ----------
    edges : iterable of GraphEdge
    counts : ForwardedCounts, optional
        None if nothing is counted.

    Attributes
    ----------
    expressions : list of Expr
        The expressions that must be computed for the counts.
    """

    def __init__(self, edges: Iterable[GraphEdge], counts: ForwardedCounts | None) -> None:
        self._edges = (
            [] if counts is None else [(edge.view.where, counts.adding(edge.parent, edge.child)) for edge in edges]
        )
        self.expressions: list[Expr] = [where for where, _ in self._edges if where is not None]

    def prepare(self, batch: Batch, columns: Columns) -> Callable[[], None]:
        """Count the rows of a batch; the returned function adds the numbers to the counters."""
        counts = [(add, len(SelectedRows(batch, columns, where))) for where, add in self._edges]

        def count() -> None:
            for add, records in counts:
                add(records)

        return count


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
        if batch.ranks is not None:
            current.rank = int(batch.ranks[-1])

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
        return BatchTarget(target, source, task.handles.of(node.name, BatchBuffer), task.context.current)
    if isinstance(node.columns, SessionForm):
        return SessionTarget(target, task.handles.of(node.name, LiveAggregation))
    other_nodes = [other for other in task.sub_topology.nodes if other.name != node.name]
    shared = any(set(node.stores) & set(getattr(other, "stores", ())) for other in other_nodes)
    return AggregateTarget(target, task.handles.of(node.name, AggregateHandle), task.context, may_buffer=not shared)


def live_regions(task: RegionParts) -> dict[str, Region]:
    """Return the regions of one task, by the name of the source."""
    plans = plan_regions(task.sub_topology, caching=task.context.application.settings.caching)
    return {name: Region(plan, task) for name, plan in plans.items() if isinstance(plan, ColumnPlan)}

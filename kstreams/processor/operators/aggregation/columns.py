"""`AggregateTarget`: an aggregation on columns, which buffers rows, groups them, and merges the groups into the store.

With the record cache, no update is visible before the next flush. So up to `ROWS_AT_ONCE` rows are buffered, unless
another operator reads the store. If nearly each row has a key of its own, fewer are buffered, since all updates of one
merge stay in memory until the next commit. Buffered rows are merged before a flush, and before a batch takes the record
path.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.expressions import Aggregation, Operation
from kstreams.expressions.exactness import Inexact
from kstreams.kernel.batch import Integers
from kstreams.kernel.timestamps import stream_times
from kstreams.processor.columns.forms import AggregateForm
from kstreams.processor.columns.projection import Target, aggregate_of
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.columns.windowing import RowGroups, closings, group, place
from kstreams.processor.context.operator_context import TaskContext
from kstreams.processor.operators.aggregation.emission import make_tuple
from kstreams.processor.operators.aggregation.live_aggregation import AggregateHandle
from kstreams.processor.operators.aggregation.partials import merge_states
from kstreams.record import ValueAndTimestamp
from kstreams.windows import TimeWindows

ROWS_AT_ONCE = 250_000
_GROUP_BYTES = 1_024  # the memory of an update until it is committed, and of its computation
_TIMESTAMPED = partial(make_tuple, ValueAndTimestamp)


class AggregateTarget:
    """The aggregation at the end of a path through a region.

    Parameters
    ----------
    target : Target
        The columns that arrive.
    live : AggregateHandle
        The state of the operator.
    context : TaskContext
        Counts dropped records.
    may_buffer : bool
        True if rows may be buffered.
    """

    takes_headers = False

    def __init__(self, target: Target, live: AggregateHandle, context: TaskContext, may_buffer: bool) -> None:
        fold = aggregate_of(target.node)
        assert isinstance(fold, AggregateForm)
        self._fold = fold
        self._target = target
        self._live = live
        self._context = context
        self._may_buffer = may_buffer and not fold.emit_on_close
        inputs = iter(target.values)
        self._inputs = [next(inputs) if slot.inputs else None for slot in fold.aggregation.slots]
        self._without_value = None if fold.windows is not None else target.values[-1]
        self._buffered: list[_Rows] = []
        self._most_groups = max(1, context.application.settings.uncommitted_bytes // _GROUP_BYTES)
        self._rows_at_once = min(ROWS_AT_ONCE, self._most_groups)

    def prepare(self, selected: SelectedRows) -> Callable[[], None]:
        """Compute the columns of a batch, and return a function that aggregates them.

        Raises
        ------
        Inexact
            If columns would merge the records differently than the record path.
        """
        keys = selected.of(self._target.view.key)
        times = selected.times()
        inputs = [None if expr is None else selected.of(expr) for expr in self._inputs]
        check_inputs(self._fold.aggregation, inputs)
        rows = _Rows(keys, times, inputs, self._reached(selected), self._ranks(selected))
        unkeyed = keys.null_count
        empty = pa.nulls(0) if self._without_value is None else selected.of(self._without_value)
        if self._context.failures.keeps_dropped:
            self._refuse_drops(rows, unkeyed, empty)
        return lambda: self._take(rows, unkeyed, empty)

    def _reached(self, selected: SelectedRows) -> Integers:
        """Return the progress of the task at each row, if windows are emitted between rows."""
        if not self._fold.emit_on_close:
            return selected.times()
        return selected.reached(self._context.current.reached)

    def _ranks(self, selected: SelectedRows) -> Integers:
        """Return the rank of each row (`CurrentRecord.rank`), 0 if the records have none."""
        ranks = selected.ranks()
        return np.zeros(len(selected), np.int64) if ranks is None else ranks

    def _refuse_drops(self, rows: _Rows, unkeyed: int, empty: pa.Array) -> None:
        """Raise Inexact if a record would be dropped: each dropped record is written to the dead-letter topic."""
        if unkeyed or (len(empty) and pc.any(empty).as_py()) or self._late(rows):
            raise Inexact("drops records")

    def _late(self, rows: _Rows) -> int:
        if self._fold.windows is None:
            return 0
        times = [self._live.stream_time_ms, *(int(buffered.times.max()) for buffered in self._buffered)]
        return place(rows.times, stream_times(rows.times, max(times)), self._fold.windows).late

    def _take(self, rows: _Rows, unkeyed: int, empty: pa.Array) -> None:
        if unkeyed:
            self._drop("null key" if self._without_value is None else "null key or value", unkeyed)
            keyed = rows.keys.is_valid()
            rows = rows.filter(keyed)
            empty = empty.filter(keyed) if len(empty) else empty
        if len(empty) and pc.any(empty).as_py():
            self._drop("null key or value", pc.sum(empty).as_py())
            rows = rows.filter(pc.invert(empty))
        if len(rows.times):
            self._buffered.append(rows)
        if not self._may_buffer or sum(len(buffered.times) for buffered in self._buffered) >= self._rows_at_once:
            self.complete()

    def _drop(self, reason: str, count: int) -> None:
        self._context.drop(self._target.node.name, reason, count)

    def complete(self) -> None:
        """Aggregate the buffered rows."""
        if not self._buffered:
            return
        rows = _joined(self._buffered)
        self._buffered.clear()
        windows = self._fold.windows
        if windows is None:
            self._merge(rows, group(rows.keys, None))
        else:
            self._fold_windows(rows, windows)

    def _fold_windows(self, rows: _Rows, windows: TimeWindows) -> None:
        live = self._live
        times = stream_times(rows.times, live.stream_time_ms)
        # What closes by a record is emitted before the record enters its own windows.
        closing = closings(times, live.stream_time_ms, windows) if self._fold.emit_on_close else []
        for start, end in pairwise(dict.fromkeys([0, *closing, len(times)])):
            live.stream_time_ms = int(times[start])
            if closing:
                self._context.current.reached = int(rows.reached[start])
                self._context.current.rank = int(rows.ranks[start])
                live.close_windows()
            self._fold_part(rows.slice(start, end), times[start:end], windows)
            live.stream_time_ms = int(times[end - 1])

    def _fold_part(self, rows: _Rows, times: Integers, windows: TimeWindows) -> None:
        placed = place(rows.times, times, windows)
        if placed.late:
            self._drop("late: its window is closed", placed.late)
        if len(placed.rows):
            part = rows.take(placed.rows)
            self._merge(part, group(part.keys, placed.starts))

    def _merge(self, rows: _Rows, groups: RowGroups) -> None:
        """Merge rows into the states of their groups, write the states, and emit one update per group."""
        places = (groups.keys,) if groups.starts is None else (groups.keys, groups.starts)
        old_rows = self._live.store.get_many(*places)
        old = [None if row is None else row.value for row in old_rows]
        new = self._merged(old, groups, rows)
        times = np.array([-1 if row is None else row.timestamp for row in old_rows], np.int64)
        np.maximum.at(times, groups.of_row, rows.times)
        timestamps = times.tolist()
        self._live.store.put_many(*places, list(map(_TIMESTAMPED, zip(new, timestamps, strict=True))))
        self._rows_at_once = min(ROWS_AT_ONCE, self._most_groups * len(rows.times) // len(groups.keys))
        emit_of = self._live.emit_of
        keys = groups.keys
        starts: list[Any] = groups.starts or [None] * len(keys)
        for at in groups.by_last_row():
            emit_of(starts[at])(keys[at], new[at], old[at], timestamps[at], ())

    def _merged(self, old: list[object], groups: RowGroups, rows: _Rows) -> list[object]:
        initial = self._fold.aggregation.initial()
        states = [initial if state is None else state for state in old]
        return merge_states(self._fold.aggregation, states, groups, rows.inputs, self._live.members)


class _Rows:
    """Buffered rows: keys, times, the inputs of each slot, `reached` (see `AggregateTarget._reached`), and ranks."""

    __slots__ = ("inputs", "keys", "ranks", "reached", "times")

    def __init__(
        self, keys: pa.Array, times: Integers, inputs: list[pa.Array | None], reached: Integers, ranks: Integers
    ) -> None:
        self.keys = keys
        self.times = times
        self.inputs = inputs
        self.reached = reached
        self.ranks = ranks

    def slice(self, start: int, end: int) -> _Rows:
        inputs = [None if column is None else column.slice(start, end - start) for column in self.inputs]
        keys = self.keys.slice(start, end - start)
        return _Rows(keys, self.times[start:end], inputs, self.reached[start:end], self.ranks[start:end])

    def filter(self, mask: pa.Array) -> _Rows:
        return self.take(np.flatnonzero(mask.to_numpy(zero_copy_only=False)))

    def take(self, rows: Integers) -> _Rows:
        if len(rows) == len(self.times) and bool((rows == np.arange(len(rows))).all()):
            return self
        at = pa.array(rows)
        inputs = [None if column is None else column.take(at) for column in self.inputs]
        return _Rows(self.keys.take(at), self.times[rows], inputs, self.reached[rows], self.ranks[rows])


def _joined(parts: list[_Rows]) -> _Rows:
    if len(parts) == 1:
        return parts[0]
    inputs = [
        None if column is None else pa.concat_arrays([part.inputs[at] for part in parts])
        for at, column in enumerate(parts[0].inputs)
    ]
    keys = pa.concat_arrays([part.keys for part in parts])
    names = ("times", "reached", "ranks")
    times, reached, ranks = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return _Rows(keys, times, inputs, reached, ranks)


def check_inputs(aggregation: Aggregation, inputs: list[pa.Array | None]) -> None:
    """Raise Inexact if columns would merge differently from records, or if a record may be refused."""
    nulls = sum(column.null_count for column in inputs if column is not None)
    if aggregation.required and (nulls or aggregation.divides):
        raise Inexact("a field that must not be null may become null")
    for slot, column in zip(aggregation.slots, inputs, strict=True):
        _check_zeros(slot.operation, column)


def _check_zeros(operation: Operation, column: pa.Array | None) -> None:
    """Raise Inexact for a minus zero: the record path returns the first of 0.0 and -0.0, numpy either of them."""
    if operation in (Operation.MIN, Operation.MAX) and column is not None and pa.types.is_floating(column.type):
        numbers = column.to_numpy(zero_copy_only=False)
        if np.signbit(numbers[numbers == 0]).any():
            raise Inexact("minus zero")

"""One aggregate per key and sliding window, emitted at every update or once at the window's close.

`kstreams.windows.sliding` says which windows a record changes. Stream time is this operator's own: the greatest
timestamp that reached it. A window [s, s + d] is closed, and takes no more records, once stream time has passed
s + d + grace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.aggregation.aggregator import Aggregator, RowUpdate
from kstreams.processor.operators.aggregation.emission import Emit, MaterializedRows, emit_nothing, emitter, make_tuple
from kstreams.processor.operators.aggregation.live_aggregation import LiveAggregation
from kstreams.processor.operators.windowed.rows import LATE, final_emitter
from kstreams.processor.topology.operator import Forward
from kstreams.record import Window, Windowed
from kstreams.windows import SlidingWindows
from kstreams.windows.sliding import placements


@dataclass(frozen=True, slots=True)
class SlidingAggregateOperator(ClosureOperator):
    """Aggregates the records of each key by sliding windows; those with a null key or value or late are dropped."""

    aggregator: Aggregator
    table_rows: MaterializedRows
    windows: SlidingWindows
    emits_on_close: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        live = LiveAggregation(context, self.table_rows.store, self._emit(context, forward))
        step, wrap = self.aggregator.bind()
        updated = self.aggregator.row_update(step, cached=self.table_rows.uses_cache(context))
        process = self._closure(context, live, updated)
        if not self.emits_on_close:
            return wrap(process)
        self._emit_at_close(context, forward, live)
        return wrap(live.closing_first(process, needs_value=True))

    def _emit(self, context: OperatorContext, forward: Forward) -> Emit:
        if self.emits_on_close:
            return emit_nothing
        return emitter(context, forward, self.table_rows, result=self.aggregator.result, of_windows=True)

    def _closure(self, context: OperatorContext, live: LiveAggregation, updated: RowUpdate) -> Forward:
        difference_ms = self.windows.difference_ms
        grace_ms = self.windows.grace_ms
        dropped = context.dropped
        fetch = live.store.latest_first
        get = live.store.get
        write = _row_writer(context, live, difference_ms)

        def process(key: object, value: object, timestamp: int) -> None:
            if key is None or value is None:
                dropped("null key or value")
                return
            if timestamp > live.stream_time_ms:  # noqa: PLR1730 (`max` would be a call per record)
                live.stream_time_ms = timestamp
            open_ms = live.stream_time_ms - grace_ms - difference_ms  # windows that start before are closed
            if timestamp < open_ms:
                dropped(LATE)
                return
            rows = fetch(key, max(0, timestamp - 2 * difference_ms), timestamp + 1)
            placed = placements([(start_ms, row[1]) for start_ms, row in rows.items()], timestamp, difference_ms)
            # An aggregator may change its aggregate in place, so a window that splits off another one is read first.
            split_rows = [get(key, like_ms) for _, like_ms, takes_record in placed if not takes_record]
            updated_ms = -1
            for start_ms, like_ms, takes_record in placed:
                if not takes_record:
                    write(key, start_ms, split_rows[0], None)
                elif start_ms >= open_ms:
                    row = rows.get(like_ms)
                    # The window after the last record may be the one that ends with this record: it changes twice.
                    old_row = row if start_ms == like_ms else get(key, start_ms) if start_ms == updated_ms else None
                    old = old_row and old_row[0]
                    write(key, start_ms, updated(key, value, timestamp, row), old)
                    updated_ms = start_ms
                else:
                    dropped(LATE)

        return process

    def _emit_at_close(self, context: OperatorContext, forward: Forward, live: LiveAggregation) -> None:
        difference_ms = self.windows.difference_ms
        emit_started = final_emitter(context, live.store, difference_ms, self.aggregator.result, forward)

        def emit_ended(first_ms: int, last_ms: int) -> None:
            emit_started(max(0, first_ms - difference_ms), last_ms - difference_ms)

        live.closes_by_end(context, emit_ended, grace_ms=self.windows.grace_ms, size_ms=difference_ms)


def _row_writer(
    context: OperatorContext, live: LiveAggregation, difference_ms: int
) -> Callable[[Any, int, Any, Any], None]:
    """Return `write(key, start_ms, new_row, old)`, which writes the row of a window and emits the update."""
    put_row = live.store.put
    emit = live.emit
    current = context.current

    def write(key: object, start_ms: int, new_row: Any, old: object) -> None:
        new, latest = new_row
        put_row(key, None if new is None else new_row, start_ms)
        window = make_tuple(Window, (start_ms, start_ms + difference_ms))
        emit(make_tuple(Windowed, (key, window)), new, old, latest, current.headers)

    return write

"""One aggregate per key and sliding window, emitted at every update or once at the window's close.

`kstreams.windows.sliding` says which windows a record changes. Stream time is this operator's own: the greatest
timestamp that reached it. A window [s, s + d] is closed, and takes no more records, once stream time has passed
s + d + grace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.aggregation.aggregator import Aggregator, RowUpdater
from kstreams.processor.operators.aggregation.emission import Emit, MaterializedRows, emit_nothing, emitter, make_tuple
from kstreams.processor.operators.aggregation.live_aggregation import LiveAggregation
from kstreams.processor.operators.windowed.rows import LATE, final_emitter
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers, Window, Windowed
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
        updater, wrap = self.aggregator.row_updater(context, self.table_rows)
        process = self._closure(context, live, updater)
        if not self.emits_on_close:
            return wrap(process)
        self._emit_at_close(context, forward, live)
        return wrap(live.closing_first(process, needs_value=True))

    def _emit(self, context: OperatorContext, forward: Forward) -> Emit:
        if self.emits_on_close:
            return emit_nothing
        return emitter(context, forward, self.table_rows, result=self.aggregator.result, of_windows=True)

    def _closure(self, context: OperatorContext, live: LiveAggregation, updater: RowUpdater) -> Forward:
        difference_ms = self.windows.difference_ms
        grace_ms = self.windows.grace_ms
        dropped = context.dropped
        fetch = live.store.latest_first
        get = live.store.get
        window = _WindowRow(live, difference_ms)
        update = updater.bind(window.get, window.put, window.emit)
        current = context.current

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
                window.start_ms = start_ms
                if not takes_record:
                    row = split_rows[0]
                    window.old_row = None
                    window.put(key, row)
                    window.emit(key, row[0], None, row[1], current.headers)
                elif start_ms >= open_ms:
                    window.row = rows.get(like_ms)
                    # The window after the last record may be the one that ends with this record: it changes twice.
                    is_again = start_ms == updated_ms
                    window.old_row = window.row if start_ms == like_ms else get(key, start_ms) if is_again else None
                    update(key, value, timestamp)
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


class _WindowRow:
    """The row of one window, which begins as a copy of another window's row.

    Attributes
    ----------
    start_ms : int
        The start of the window.
    row : ValueAndTimestamp or None
        The row from which the window begins.
    old_row : ValueAndTimestamp or None
        The row that the window had before.
    """

    __slots__ = ("_difference_ms", "_emit", "_put", "old_row", "row", "start_ms")

    def __init__(self, live: LiveAggregation, difference_ms: int) -> None:
        self._difference_ms = difference_ms
        self._put = live.store.put
        self._emit = live.emit
        self.start_ms = 0
        self.row: Any = None
        self.old_row: Any = None

    def get(self, key: object) -> Any:
        return self.row

    def put(self, key: object, row: Any) -> None:
        self._put(key, row, self.start_ms)

    def emit(self, key: object, new: object, old: object, timestamp: int, headers: Headers) -> None:
        """Emit an update of the window. Its old value is that of `old_row`, not that of the row it begins from."""
        window = make_tuple(Window, (self.start_ms, self.start_ms + self._difference_ms))
        old_row = self.old_row
        old_value = None if old_row is None else old_row[0]
        self._emit(make_tuple(Windowed, (key, window)), new, old_value, timestamp, headers)

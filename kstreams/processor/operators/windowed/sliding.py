"""One aggregate per key and sliding window, emitted at every update or once at the window's close.

Which windows a record changes is said by `kstreams.windows.sliding`. Stream time is this operator's own: the greatest
timestamp that reached it. A window [s, s + d] is closed, and takes no more records, once stream time has passed
s + d + grace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.operator_binding import ClosureOperator
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.aggregation.emission import Emit, emit_nothing, emitter, make_tuple
from kstreams.processor.operators.aggregation.live_aggregation import LiveAggregation
from kstreams.processor.operators.aggregation.rows import Aggregator
from kstreams.processor.operators.tables.rows import MaterializedRows
from kstreams.processor.operators.windowed.rows import LATE, final_emitter
from kstreams.processor.topology.operator import Forward
from kstreams.record import ValueAndTimestamp, Window, Windowed
from kstreams.windows import SlidingWindows
from kstreams.windows.sliding import placements

Place = Callable[[Any, Any, int, int, ValueAndTimestamp | None, Any], None]
"""`place(key, value, timestamp, start, row, old)`: take a record into a window that begins with a row, and was old."""


@dataclass(frozen=True, slots=True)
class SlidingAggregateOperator(ClosureOperator):
    """Aggregates the records of each key by sliding windows; those with a null key or value or late are dropped."""

    aggregator: Aggregator
    kept: MaterializedRows
    windows: SlidingWindows
    emits_on_close: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        live = LiveAggregation(context, self.kept.store, self._emit(context, forward))
        step, wrap = self.aggregator.bind()
        process = self._closure(context, self._placing(context, step, live), live)
        if not self.emits_on_close:
            return wrap(process)
        self._emit_at_close(context, forward, live)
        return wrap(live.closing_first(process, needs_value=True))

    def _caches(self, context: OperatorContext) -> bool:
        return self.kept.caching and context.caching

    def _emit(self, context: OperatorContext, forward: Forward) -> Emit:
        if self.emits_on_close:
            return emit_nothing
        kept = self.kept
        result = self.aggregator.result
        return emitter(
            context,
            forward,
            caching=kept.caching,
            sends_old=kept.sends_old,
            store=kept.store,
            result=result,
            of_windows=True,
        )

    def _closure(self, context: OperatorContext, place: Place, live: LiveAggregation) -> Forward:
        difference_ms = self.windows.difference_ms
        grace_ms = self.windows.grace_ms
        dropped = context.dropped
        fetch = live.store.latest_first
        get = live.store.get
        cut_out = _cutting_out(context, live, difference_ms)

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
            # An aggregator may change its aggregate in place: what is cut out of one is read before.
            copied = [get(key, like_ms) for _, like_ms, takes_record in placed if not takes_record]
            made_ms = -1
            for start_ms, like_ms, takes_record in placed:
                if not takes_record:
                    cut_out(key, start_ms, copied[0])
                elif start_ms >= open_ms:
                    row = rows.get(like_ms)
                    # The window behind the record before may be the one that ends with this record: it is made twice.
                    was = row if start_ms == like_ms else get(key, start_ms) if start_ms == made_ms else None
                    place(key, value, timestamp, start_ms, row, was and was[0])
                    made_ms = start_ms
                else:
                    dropped(LATE)

        return process

    def _placing(self, context: OperatorContext, step: Callable[[Any, Any, Any], Any], live: LiveAggregation) -> Place:
        initial = self.aggregator.initial
        put_row = live.store.put
        emit = live.emit
        current = context.current
        cached = self._caches(context)
        difference_ms = self.windows.difference_ms
        gave_nothing = self.aggregator.gave_nothing

        def place(key: Any, value: Any, timestamp: int, start_ms: int, row: Any, old: Any) -> None:
            if row is None:
                latest = timestamp
                new = step(key, value, initial())
            else:
                aggregate, latest = row
                latest = timestamp if timestamp > latest else latest
                new = step(key, value, aggregate)
            if new is None:
                if row is None:
                    gave_nothing()
                put_row(key, None, start_ms)
                latest = timestamp if cached else latest
            else:
                put_row(key, make_tuple(ValueAndTimestamp, (new, latest)), start_ms)
            window = make_tuple(Window, (start_ms, start_ms + difference_ms))
            emit(make_tuple(Windowed, (key, window)), new, old, latest, current.headers)

        return place

    def _emit_at_close(self, context: OperatorContext, forward: Forward, live: LiveAggregation) -> None:
        difference_ms = self.windows.difference_ms
        grace_ms = self.windows.grace_ms
        emit_between = final_emitter(context, live.store, difference_ms, self.aggregator.result, forward)

        def close() -> int:
            until_ms = live.stream_time_ms - grace_ms
            if until_ms > max(difference_ms, live.closed_until_ms):
                emit_between(max(0, live.closed_until_ms - difference_ms), until_ms - difference_ms - 1)
                live.closed_until_ms = until_ms  # what ended before this was emitted
            return live.stream_time_ms + 1

        live.closes_by(context, close, lambda stream_time_ms: stream_time_ms + difference_ms + grace_ms + 1)


def _cutting_out(
    context: OperatorContext, live: LiveAggregation, difference_ms: int
) -> Callable[[Any, int, Any], None]:
    put_row = live.store.put
    emit = live.emit
    current = context.current

    def cut_out(key: object, start_ms: int, row: ValueAndTimestamp[object]) -> None:
        """Keep a window that does not hold the record: the part of a longer one that follows it."""
        put_row(key, row, start_ms)
        window = make_tuple(Window, (start_ms, start_ms + difference_ms))
        emit(make_tuple(Windowed, (key, window)), row[0], None, row[1], current.headers)

    return cut_out

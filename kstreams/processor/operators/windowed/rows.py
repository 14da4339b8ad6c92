"""One aggregate per key and window of event time, emitted at every update or once at the window's close.

Stream time is this operator's own: the greatest timestamp that reached it. A window [s, s + size) is closed, and takes
no more records, once stream time has reached s + size + grace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.aggregation.aggregator import Aggregator, RowUpdate, RowUpdater
from kstreams.processor.operators.aggregation.emission import (
    Emit,
    MaterializedRows,
    Results,
    emit_nothing,
    window_emitter,
)
from kstreams.processor.operators.aggregation.live_aggregation import LiveWindows
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, Window, Windowed

LATE = "late: its window is closed"


class FixedSizeWindows(Protocol):
    """Windows of one size."""

    @property
    def size_ms(self) -> int: ...
    @property
    def advance_ms(self) -> int: ...
    @property
    def grace_ms(self) -> int: ...

    def starts_at(self, timestamp_ms: int) -> Iterable[int]:
        """The starts of the windows that hold a time, ascending."""
        ...

    def starts_ending_until(self, end_ms: int) -> int:
        """The greatest start of a window that ends at or before a time; negative when none does."""
        ...


@dataclass(frozen=True, slots=True)
class WindowedAggregateOperator(ClosureOperator):
    """Aggregates the records of each key and window; those with a null key or late for a window are dropped."""

    aggregator: Aggregator
    table_rows: MaterializedRows
    windows: FixedSizeWindows
    emits_on_close: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        live = LiveWindows(context, self.table_rows.store, self._emit_of(context, forward))
        if self.emits_on_close:
            self._emit_at_close(context, forward, live)
        updater, wrap = self.aggregator.row_updater(context, self.table_rows)
        live.members = updater.members
        build = _tumbling if self._reads_frames(context, live) else _window_by_window
        process = build(self.windows, live, updater, context)
        return wrap(live.closing_first(process) if self.emits_on_close else process)

    def _reads_frames(self, context: OperatorContext, live: LiveWindows) -> bool:
        """Frames show what has expired, as the cache does; without it that must not be seen by a stream that lags."""
        is_tumbling = self.windows.advance_ms == self.windows.size_ms
        hides_expired = self.table_rows.shared and not self.table_rows.uses_cache(context)
        return is_tumbling and live.store.has_plain_frames and not hides_expired

    def _emit_of(self, context: OperatorContext, forward: Forward) -> Callable[[int], Emit]:
        if self.emits_on_close:
            return _no_emit
        return window_emitter(context, forward, self.table_rows, self.windows.size_ms, result=self.aggregator.result)

    def _emit_at_close(self, context: OperatorContext, forward: Forward, live: LiveWindows) -> None:
        windows = self.windows
        size_ms = self.windows.size_ms
        grace_ms = self.windows.grace_ms
        emit_between = final_emitter(context, live.store, size_ms, self.aggregator.result, forward)

        def close() -> int:
            until = windows.starts_ending_until(live.stream_time_ms - grace_ms)
            if until > live.closed_until_ms:
                emit_between(live.closed_until_ms + 1, until)
                live.closed_until_ms = until  # the greatest start that was emitted
            return max(0, until + windows.advance_ms) + size_ms + grace_ms

        live.closes_by(context, close, lambda stream_time_ms: stream_time_ms + size_ms + grace_ms)


def _no_emit(start_ms: int) -> Emit:
    return emit_nothing


def final_emitter(
    context: OperatorContext, store: Any, size_ms: int, results: Results | None, forward: Forward
) -> Callable[[int, int], None]:
    """Emits the windows with a start between two times, both included, by start and serialized key."""
    result = None if results is None else results.bind(context)

    def emit_between(first_ms: int, last_ms: int) -> None:
        closed = store.started_between(first_ms, last_ms)
        for (key, (start_ms, _)), (value, timestamp) in context.sending_meanwhile(closed):
            windowed = Windowed(key, Window(start_ms, start_ms + size_ms))
            forward(windowed, Change(value if result is None else result(windowed, value)), timestamp)

    return emit_between


def _tumbling(windows: FixedSizeWindows, live: LiveWindows, updater: RowUpdater, context: OperatorContext) -> Forward:
    """Bind an operator with one window per record. The update is bound to the frame of the last window."""
    size_ms = windows.size_ms
    dropped = context.dropped
    frame_ms = -1
    until_closed_ms = windows.size_ms + windows.grace_ms
    update: RowUpdate

    def open_frame(start_ms: int) -> None:
        nonlocal frame_ms, update
        frame_ms = start_ms
        frame = live.store.frame(start_ms)
        update = updater.bind(frame.__getitem__, frame.put, live.emit_of(start_ms), start_ms)

    def close_frame() -> None:
        nonlocal frame_ms
        frame_ms = -1

    def process(key: object, value: object, timestamp: int) -> None:
        start_ms = timestamp - timestamp % size_ms
        if key is None:
            dropped("null key")
            return
        if start_ms + until_closed_ms <= live.stream_time_ms:
            dropped(LATE)
            return
        if timestamp > live.stream_time_ms:  # noqa: PLR1730 (`max` would be a call per record)
            live.stream_time_ms = timestamp
        if start_ms != frame_ms:
            open_frame(start_ms)
        update(key, value, timestamp)

    context.at_flush(close_frame)
    return process


def _window_by_window(
    windows: FixedSizeWindows, live: LiveWindows, updater: RowUpdater, context: OperatorContext
) -> Forward:
    starts_at = windows.starts_at
    dropped = context.dropped
    until_closed_ms = windows.size_ms + windows.grace_ms
    updates: dict[int, RowUpdate] = {}

    def update_of(start_ms: int) -> RowUpdate:
        get = live.store.get
        put_row = live.store.put
        return updater.bind(
            lambda key: get(key, start_ms),
            lambda key, row: put_row(key, row, start_ms),
            live.emit_of(start_ms),
            start_ms,
        )

    def process(key: object, value: object, timestamp: int) -> None:
        if key is None:
            dropped("null key")
            return
        live.stream_time_ms = max(live.stream_time_ms, timestamp)
        closed_ms = live.stream_time_ms - until_closed_ms  # windows that start until then are closed
        for start_ms in starts_at(timestamp):
            if start_ms <= closed_ms:
                dropped(LATE)
                continue
            update = updates.get(start_ms)
            if update is None:
                update = updates[start_ms] = update_of(start_ms)
            update(key, value, timestamp)

    context.at_flush(updates.clear)
    return process


@dataclass(frozen=True, slots=True)
class WindowStoreView(TableView):
    """Looks rows of a windowed table up in its store."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, context: OperatorContext) -> ValueGetter:
        get = context.state_store(self.store).get

        def look_up(key: Windowed[object]) -> Any:
            return get(key.key, key.window.start_ms)

        return look_up

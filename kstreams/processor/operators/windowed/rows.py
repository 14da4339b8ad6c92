"""One aggregate per key and window of event time, emitted at every update or once at the window's close.

Stream time is this operator's own: the greatest timestamp that reached it. A window [s, s + size) is closed, and takes
no more records, once stream time has reached s + size + grace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from kstreams.processor.context.operator_binding import ClosureOperator
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.aggregation.emission import Emit, emit_nothing, make_tuple, window_emitter
from kstreams.processor.operators.aggregation.live_aggregation import LiveWindows
from kstreams.processor.operators.aggregation.rows import Aggregator
from kstreams.processor.operators.tables.rows import MaterializedRows
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, ValueAndTimestamp, Window, Windowed

Step = Callable[[Any, Any, Any], Any]

Update = Callable[[Any, Any, int, int], None]
"""`update(key, value, timestamp, start)`: take a record into one window."""

LATE = "late: its window is closed"


class Parts(NamedTuple):
    """What the update of one window is made of."""

    step: Step
    initial: Callable[[], Any]
    cached: bool
    gave_nothing: Callable[[], None]


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
    kept: MaterializedRows
    windows: FixedSizeWindows
    emits_on_close: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        live = LiveWindows(context, self.kept.store, self._emit_of(context, forward))
        if self.emits_on_close:
            self._emit_at_close(context, forward, live)
        step, wrap = self.aggregator.bind()
        build = _tumbling if self._holds_frames(context, live) else _window_by_window
        aggregator = self.aggregator
        parts = Parts(step, aggregator.initial, self._caches(context), aggregator.gave_nothing)
        process = build(self.windows, live, parts, context)
        return wrap(live.closing_first(process) if self.emits_on_close else process)

    def _holds_frames(self, context: OperatorContext, live: LiveWindows) -> bool:
        """Frames show what has expired, as the cache does; without it that must not be seen by a stream that lags."""
        is_tumbling = self.windows.advance_ms == self.windows.size_ms
        hides_expired = self.kept.shared and not self._caches(context)
        return is_tumbling and live.store.has_plain_frames and not hides_expired

    def _caches(self, context: OperatorContext) -> bool:
        return self.kept.caching and context.caching

    def _emit_of(self, context: OperatorContext, forward: Forward) -> Callable[[int], Emit]:
        if self.emits_on_close:
            return _no_emit
        return window_emitter(
            context,
            forward,
            self.windows.size_ms,
            caching=self.kept.caching,
            sends_old=self.kept.sends_old,
            result=self.aggregator.result,
            store=self.kept.store,
        )

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
    context: OperatorContext, store: Any, size_ms: int, result: Callable[[Any], Any] | None, forward: Forward
) -> Callable[[int, int], None]:
    """Emits the windows with a start between two times, both included, by start and serialized key."""

    def emit_between(first_ms: int, last_ms: int) -> None:
        closed = store.started_between(first_ms, last_ms)
        for (key, (start_ms, _)), (value, timestamp) in context.sending_meanwhile(closed):
            final = value if result is None else result(value)
            forward(Windowed(key, Window(start_ms, start_ms + size_ms)), Change(final), timestamp)

    return emit_between


def _tumbling(  # noqa: C901 (calls per record cost too much)
    windows: FixedSizeWindows, live: LiveWindows, parts: Parts, context: OperatorContext
) -> Forward:
    """Bind an operator with one window per record. It keeps the entries of the last window at hand."""
    step, initial, cached, gave_nothing = parts
    size_ms = windows.size_ms
    current = context.current
    dropped = context.dropped
    held_ms = -1
    until_closed_ms = windows.size_ms + windows.grace_ms
    entries: Any
    emit: Emit

    def hold(start_ms: int) -> None:
        nonlocal held_ms, entries, emit
        held_ms = start_ms
        entries = live.store.frame(start_ms)
        emit = live.emit_of(start_ms)

    def let_go() -> None:
        nonlocal held_ms
        held_ms = -1

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
        if start_ms != held_ms:
            hold(start_ms)
        row = entries.get(key)
        if row is None and not entries.complete:
            row = entries[key]  # it may be persisted
        if row is None:
            old = None
            latest = timestamp
            new = step(key, value, initial())
            if new is None:
                gave_nothing()
        else:
            old, latest = row
            latest = timestamp if timestamp > latest else latest
            new = step(key, value, old)
        entries[key] = None if new is None else make_tuple(ValueAndTimestamp, (new, latest))
        entries.changed[key] = None
        emit(key, new, old, timestamp if new is None and cached else latest, current.headers)

    context.at_flush(let_go)
    return process


def _updater(live: LiveWindows, parts: Parts, context: OperatorContext) -> Update:
    step, initial, cached, gave_nothing = parts
    get = live.store.get
    put_row = live.store.put
    emit_of = live.emit_of
    current = context.current

    def update(key: Any, value: Any, timestamp: int, start_ms: int) -> None:
        row = get(key, start_ms)
        if row is None:
            old = None
            latest = timestamp
            new = step(key, value, initial())
        else:
            old, latest = row
            latest = timestamp if timestamp > latest else latest
            new = step(key, value, old)
        if new is None:
            if row is None:
                gave_nothing()
            put_row(key, None, start_ms)
            latest = timestamp if cached else latest
        else:
            put_row(key, make_tuple(ValueAndTimestamp, (new, latest)), start_ms)
        emit_of(start_ms)(key, new, old, latest, current.headers)

    return update


def _window_by_window(windows: FixedSizeWindows, live: LiveWindows, parts: Parts, context: OperatorContext) -> Forward:
    update = _updater(live, parts, context)
    starts_at = windows.starts_at
    dropped = context.dropped
    until_closed_ms = windows.size_ms + windows.grace_ms

    def process(key: object, value: object, timestamp: int) -> None:
        if key is None:
            dropped("null key")
            return
        live.stream_time_ms = max(live.stream_time_ms, timestamp)
        still_open_ms = live.stream_time_ms - until_closed_ms
        for start_ms in starts_at(timestamp):
            if start_ms > still_open_ms:
                update(key, value, timestamp, start_ms)
            else:
                dropped(LATE)

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

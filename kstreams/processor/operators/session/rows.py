"""One aggregate per key and session, emitted at every update or once when the session has ended for good.

Stream time is this operator's own: the greatest timestamp that reached it. A session is closed, and takes no more
records, once stream time has passed its end + gap + grace. A record joins all sessions of its key within the gap: each
of them is deleted, and one takes their place.

As in Kafka Streams, updates have the time of the session's end and, without the record cache, no headers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.operator_binding import ClosureOperator
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.aggregation.emission import Emit, emit_nothing, emitter, make_tuple
from kstreams.processor.operators.aggregation.live_aggregation import LiveAggregation
from kstreams.processor.operators.aggregation.rows import Aggregator
from kstreams.processor.operators.tables.rows import MaterializedRows
from kstreams.processor.operators.windowed.rows import LATE
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, ValueAndTimestamp, Window, Windowed
from kstreams.windows import SessionWindows
from kstreams.windows.kinds import merged

Merger = Callable[[Any, Any, Any], Any]
"""`merger(key, aggregate, aggregate) -> aggregate`; called with the initial aggregate first."""


@dataclass(frozen=True, slots=True)
class SessionAggregateOperator(ClosureOperator):
    """Aggregates the records of each key by session; those with a null key or late for their session are dropped."""

    aggregator: Aggregator
    merger: Merger
    kept: MaterializedRows
    windows: SessionWindows
    emits_on_close: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        live = LiveAggregation(context, self.kept.store, self._emit(context, forward))
        step, wrap = self.aggregator.bind()
        process = self._closure(context, step, live)
        if not self.emits_on_close:
            return wrap(process)
        self._emit_at_close(context, forward, live)
        return wrap(live.closing_first(process))

    def _caches(self, context: OperatorContext) -> bool:
        return self.kept.caching and context.caching

    def _emit(self, context: OperatorContext, forward: Forward) -> Emit:
        if self.emits_on_close:
            return emit_nothing
        kept = self.kept
        result = self.aggregator.result
        to_children = forward if self._caches(context) else _without_headers(context.current, forward)
        return emitter(
            context,
            to_children,
            caching=kept.caching,
            sends_old=kept.sends_old,
            store=kept.store,
            result=result,
            of_windows=True,
        )

    def _closure(
        self, context: OperatorContext, step: Callable[[Any, Any, Any], Any], live: LiveAggregation
    ) -> Forward:
        initial = self.aggregator.initial
        merger = self.merger
        dropped = context.dropped
        gap_ms = self.windows.gap_ms
        closes_after_ms = self.windows.closes_after_ms
        near = live.store.touched
        put_row = live.store.put
        note = self._note(context, live)
        cached = self._caches(context)
        gave_nothing = self.aggregator.gave_nothing
        final = self.emits_on_close  # then what was emitted takes no part any more

        def process(key: object, value: object, timestamp: int) -> None:
            if key is None:
                dropped("null key")
                return
            if timestamp > live.stream_time_ms:  # noqa: PLR1730 (`max` would be a call per record)
                live.stream_time_ms = timestamp
            first_ms = max(timestamp - gap_ms, live.stream_time_ms - closes_after_ms) if final else timestamp - gap_ms
            touched = near(key, first_ms, timestamp + gap_ms, with_expired=cached)
            window = make_tuple(Window, (timestamp, timestamp))
            old = None
            aggregate = initial()
            if touched:
                window = merged(timestamp, [session[1] for session, _ in touched])
            if window[1] < live.stream_time_ms - closes_after_ms:
                dropped(LATE)
                return
            instant = window[0] == window[1]
            for session, earlier in touched:
                if instant:
                    old = earlier
                else:
                    put_row(session, None, timestamp)
                    note(session, None, earlier)
                aggregate = merger(key, aggregate, earlier)
            aggregate = step(key, value, aggregate)
            if aggregate is None and not touched:
                gave_nothing()
            session = make_tuple(Windowed, (key, window))
            put_row(session, aggregate, timestamp)
            note(session, aggregate, old)

        return process

    def _note(self, context: OperatorContext, live: LiveAggregation) -> Callable[[Windowed, Any, Any], None]:
        """What follows a change of the store, given what the session held before."""
        emit = live.emit
        current = context.current
        expired = live.store.has_expired
        if self.emits_on_close:
            return _note_nothing

        def note(session: Windowed, new: object, old: object) -> None:
            emit(session, new, old, session[1][1], current.headers)

        def note_cached(session: Windowed, new: object, old: object) -> None:
            """The cache takes the old value from below, where an expired session is not found."""
            emit(session, new, None if old is None or expired(session) else old, session[1][1], current.headers)

        return note_cached if self._caches(context) else note

    def _emit_at_close(self, context: OperatorContext, forward: Forward, live: LiveAggregation) -> None:
        emit_between = _final_emitter(context, live.store, self.aggregator.result, forward)
        closes_after_ms = self.windows.closes_after_ms

        def close() -> int:
            until_ms = live.stream_time_ms - closes_after_ms
            if until_ms > max(0, live.closed_until_ms):
                emit_between(live.closed_until_ms - 1, until_ms - 1)
                live.closed_until_ms = until_ms  # what ended before this was emitted
            return live.stream_time_ms + 1

        live.closes_by(context, close, lambda stream_time_ms: stream_time_ms + closes_after_ms + 1)


def _note_nothing(session: Windowed, new: object, old: object) -> None:
    return None


def _without_headers(current: CurrentRecord, forward: Forward) -> Forward:
    def forward_without_headers(key: object, value: object, timestamp: int) -> None:
        current.forward_with((), forward, key, value, timestamp)

    return forward_without_headers


def _final_emitter(
    context: OperatorContext, store: Any, result: Callable[[Any], Any] | None, forward: Forward
) -> Callable[[int, int], None]:
    """Emits the sessions with after < end <= until, by end, start and serialized key."""

    def emit_between(after_ms: int, until_ms: int) -> None:
        for session, value in context.sending_meanwhile(store.ended_by(until_ms, after_ms)):
            forward(session, Change(value if result is None else result(value)), session.window.end_ms)

    return emit_between


@dataclass(frozen=True, slots=True)
class SessionStoreView(TableView):
    """Looks rows of a table by session up in its store; their time is the session's end."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, context: OperatorContext) -> ValueGetter:
        fetch = context.state_store(self.store).fetch_session

        def look_up(key: Windowed) -> Any:
            start_ms, end_ms = key.window
            value = fetch(key.key, start_ms, end_ms)
            return None if value is None else ValueAndTimestamp(value, end_ms)

        return look_up

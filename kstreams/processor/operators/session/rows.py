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
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.aggregation.aggregator import Aggregator, Merger, Step
from kstreams.processor.operators.aggregation.emission import (
    Emit,
    MaterializedRows,
    Results,
    emit_nothing,
    emitter,
    make_tuple,
)
from kstreams.processor.operators.aggregation.live_aggregation import LiveAggregation
from kstreams.processor.operators.windowed.rows import LATE
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, ValueAndTimestamp, Window, Windowed
from kstreams.windows import SessionWindows
from kstreams.windows.kinds import merged


@dataclass(frozen=True, slots=True)
class SessionAggregateOperator(ClosureOperator):
    """Aggregates the records of each key by session; those with a null key or late for their session are dropped."""

    aggregator: Aggregator
    merger: Merger
    table_rows: MaterializedRows
    windows: SessionWindows
    emits_on_close: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        live = LiveAggregation(context, self.table_rows.store, self._emit(context, forward))
        step, wrap = self.aggregator.bind()
        process = self._closure(context, step, live)
        if not self.emits_on_close:
            return wrap(process)
        self._emit_at_close(context, forward, live)
        return wrap(live.closing_first(process))

    def _emit(self, context: OperatorContext, forward: Forward) -> Emit:
        if self.emits_on_close:
            return emit_nothing
        is_cached = self.table_rows.uses_cache(context)
        to_children = forward if is_cached else _without_headers(context.current, forward)
        return emitter(context, to_children, self.table_rows, result=self.aggregator.result, of_windows=True)

    def _closure(self, context: OperatorContext, step: Step, live: LiveAggregation) -> Forward:
        initial = self.aggregator.initial
        merger = self.merger
        dropped = context.dropped
        gap_ms = self.windows.gap_ms
        closes_after_ms = self.windows.closes_after_ms
        list_sessions = live.store.list_sessions
        put_row = live.store.put
        emit = self._session_emitter(context, live)
        cached = self.table_rows.uses_cache(context)
        warn_of_none = self.aggregator.warn_of_none
        is_final = self.emits_on_close

        def process(key: object, value: object, timestamp: int) -> None:
            if key is None:
                dropped("null key")
                return
            if timestamp > live.stream_time_ms:  # noqa: PLR1730 (`max` would be a call per record)
                live.stream_time_ms = timestamp
            open_ms = live.stream_time_ms - closes_after_ms  # sessions that ended before are closed
            first_ms = timestamp - gap_ms
            if is_final and open_ms > first_ms:  # a session whose final result was emitted grows no more
                first_ms = open_ms
            merged_sessions = list_sessions(key, first_ms, timestamp + gap_ms, with_expired=cached)
            window = make_tuple(Window, (timestamp, timestamp))
            if merged_sessions:
                window = merged(timestamp, [session[1] for session, _ in merged_sessions])
            if window[1] < open_ms:
                dropped(LATE)
                return
            old = None
            aggregate = initial()
            is_instant = window[0] == window[1]
            for session, merged_aggregate in merged_sessions:
                if is_instant:
                    old = merged_aggregate
                else:
                    put_row(session, None, timestamp)
                    emit(session, None, merged_aggregate)
                aggregate = merger(key, aggregate, merged_aggregate)
            aggregate = step(key, value, aggregate)
            if aggregate is None and not merged_sessions:
                warn_of_none()
            session = make_tuple(Windowed, (key, window))
            put_row(session, aggregate, timestamp)
            emit(session, aggregate, old)

        return process

    def _session_emitter(self, context: OperatorContext, live: LiveAggregation) -> Callable[[Windowed, Any, Any], None]:
        """Return `emit(session, new, old)`, which passes on the update of a session."""
        emit = live.emit
        current = context.current
        expired = live.store.has_expired
        if self.emits_on_close:
            return _emit_no_session

        def emit_update(session: Windowed, new: object, old: object) -> None:
            emit(session, new, old, session[1][1], current.headers)

        def emit_to_cache(session: Windowed, new: object, old: object) -> None:
            """The cache reads the old value from the store, which does not return an expired session."""
            emit(session, new, None if old is None or expired(session) else old, session[1][1], current.headers)

        return emit_to_cache if self.table_rows.uses_cache(context) else emit_update

    def _emit_at_close(self, context: OperatorContext, forward: Forward, live: LiveAggregation) -> None:
        emit_ended = _final_emitter(context, live.store, self.aggregator.result, forward)
        live.closes_by_end(context, emit_ended, grace_ms=self.windows.closes_after_ms)


def _emit_no_session(session: Windowed, new: object, old: object) -> None:
    return None


def _without_headers(current: CurrentRecord, forward: Forward) -> Forward:
    def forward_without_headers(key: object, value: object, timestamp: int) -> None:
        current.forward_with((), forward, key, value, timestamp)

    return forward_without_headers


def _final_emitter(
    context: OperatorContext, store: Any, results: Results | None, forward: Forward
) -> Callable[[int, int], None]:
    """Return a function that emits the sessions that ended between two times, by end, start and serialized key."""
    result = None if results is None else results.bind(context)

    def emit_ended(first_ms: int, last_ms: int) -> None:
        for session, value in context.sending_meanwhile(store.ended_by(last_ms, first_ms - 1)):
            forward(session, Change(value if result is None else result(session, value)), session.window.end_ms)

    return emit_ended


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

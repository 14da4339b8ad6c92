"""Windowed aggregations record by record: every update of a window, or the final results of functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

import msgspec

from kstreams.dsl import graph as g
from kstreams.errors import TopologyError
from kstreams.kernel.decoders import msgpack_decoder
from kstreams.record import Window
from kstreams.runtime.spark.code.windowed_query import delay_of, is_final
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.keyed_state import NO_STATE, KeyedState, KeyRecord, SavedState, by_key
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.rules.record_aggregation import RecordAggregation
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.serdes.windowed import session_key, time_window_key
from kstreams.windows import SessionWindows, TimeWindows
from kstreams.windows.kinds import merged

_Rows: TypeAlias = list[tuple[int, int, bytes, int]]
"""The state in Spark: start and end of each window, its serialized aggregate, and the time of the aggregate."""

_decode = msgpack_decoder(_Rows).decode


class _Aggregation(NamedTuple):
    """A windowed aggregation.

    Parameters
    ----------
    windows : TimeWindows or SessionWindows
    of_records : RecordAggregation
    merge : UserFunction or None
        Merges the aggregates of two sessions; None for time windows.
    is_final : bool
        True if only the last result of each window is emitted.
    delay_ms : int
        The delay of the watermark.
    closes_after_ms : int
        A window is closed when the greatest time of all records is later than its end by this time.
    windowed_key : callable
        Serializes a key and its window.
    """

    windows: TimeWindows | SessionWindows
    of_records: RecordAggregation
    merge: UserFunction | None
    is_final: bool
    delay_ms: int
    closes_after_ms: int
    windowed_key: Callable[[bytes, Window], bytes]

    def united(self, record: KeyRecord, aggregates: Iterable[object]) -> object:
        """Return the aggregate of the sessions that a record merges."""
        aggregate = self.of_records.initial()
        merge = self.merge
        if merge is None:
            raise TopologyError("sessions cannot be merged: the aggregation has no merger")
        for other in aggregates:
            aggregate = merge.of_record((record.origin, record.offset), (record.key,), aggregate, other)
        return aggregate


def windowed_updates(node: g.WindowedAggregate, build: RelationalLowering) -> Frame:
    """Aggregate record by record; the state of a window is deleted when the window closes."""
    windows = node.windows
    assert isinstance(windows, TimeWindows | SessionWindows)
    frame = build.parent(node)
    of_records = RecordAggregation.of(node, build)
    merger = of_records.lowered.aggregator.merge if windows.merges else None
    merge = None if merger is None else build.function(node, merger, (frame.key,))
    emits_final = is_final(node, build.typed)
    delay_ms = delay_of(node, build.typed)
    aggregation = _Aggregation(windows, of_records, merge, emits_final, delay_ms, *_kind_of(windows))
    keyed = frame.where(F.col("key").isNotNull())
    state = _Sessions if merger else _TimeWindows
    rows = by_key([keyed], state, (aggregation,), delay_ms=delay_ms)
    return Frame(rows, build.serde(node, "key"), of_records.result)


def _kind_of(windows: TimeWindows | SessionWindows) -> tuple[int, Callable[[bytes, Window], bytes]]:
    """Return `closes_after_ms` and `windowed_key` of a window kind."""
    if isinstance(windows, TimeWindows):
        return windows.grace_ms, time_window_key
    return windows.closes_after_ms + 1, session_key  # the end of a session is inclusive: it is its last record


class _Windows(KeyedState):
    """The open windows of a key: the state of Spark with the changes of this step."""

    def __init__(self, aggregation: _Aggregation, key: bytes, saved: SavedState, latest_ms: int) -> None:
        self._aggregation = aggregation
        self._key = bytes(key)
        self._latest_ms = latest_ms
        rows = [] if saved.state is None else _decode(saved.state)
        self._rows = {Window(start, end): (state, timestamp) for start, end, state, timestamp in rows}
        self._changed: dict[Window, tuple[object, int]] = {}

    def due(self, *, has_timed_out: bool) -> list[KeyRecord]:
        """Delete closed windows, and return them if only final results are emitted."""
        closed = [window for window in sorted(self._rows) if self._is_closed(window)]
        rows = [(window, *self._rows.pop(window)) for window in closed]
        return [self._final_result(*row) for row in rows] if self._aggregation.is_final else []

    def take(self, record: KeyRecord) -> Iterable[KeyRecord]:
        updates = list(self._updates(record))
        return () if self._aggregation.is_final else updates

    @abstractmethod
    def _updates(self, record: KeyRecord) -> Iterator[KeyRecord]:
        """Add a record to its windows, and return their updates."""

    def saved_state(self) -> SavedState:
        """Return all windows. The state is due when the first of them closes; for updates, when all are closed."""
        aggregation = self._aggregation
        serialized = aggregation.of_records.serialized
        changed = {window: (serialized(aggregate), time) for window, (aggregate, time) in self._changed.items()}
        rows: _Rows = [(*window, *state) for window, state in chain(self._rows.items(), changed.items())]
        if not rows:
            return NO_STATE
        ends = [end for _, end, _, _ in rows]
        end_ms = min(ends) if aggregation.is_final else max(ends)
        return SavedState(msgspec.msgpack.encode(rows), end_ms + aggregation.closes_after_ms - aggregation.delay_ms - 2)

    def _is_closed(self, window: Window) -> bool:
        return window.end_ms + self._aggregation.closes_after_ms <= self._latest_ms

    def _pop(self, window: Window) -> tuple[object, int] | None:
        """Remove a window, and return its aggregate and the time of the aggregate."""
        if window in self._rows:
            state, timestamp = self._rows.pop(window)
            return self._aggregation.of_records.deserialized(state), timestamp
        return self._changed.pop(window, None)

    def _put(self, window: Window, aggregate: object, timestamp: int) -> None:
        """Set the aggregate of a window, unless it is None."""
        if aggregate is not None:
            self._changed[window] = aggregate, timestamp

    def _windowed_key(self, window: Window) -> bytes:
        return self._aggregation.windowed_key(self._key, window)

    def _final_result(self, window: Window, state: bytes, timestamp: int) -> KeyRecord:
        of_records = self._aggregation.of_records
        value = of_records.serialized_result(of_records.deserialized(state))
        return KeyRecord(0, 0, window.start_ms, timestamp, self._windowed_key(window), value, None)


class _TimeWindows(_Windows):
    """The open time windows of a key."""

    def _updates(self, record: KeyRecord) -> Iterator[KeyRecord]:
        """Add a record to all open windows that contain it."""
        of_records = self._aggregation.of_records
        windows = self._aggregation.windows
        assert isinstance(windows, TimeWindows)
        for window in (Window(start, start + windows.size_ms) for start in windows.starts_at(record.timestamp)):
            if not self._is_closed(window):
                before, latest_ms = self._pop(window) or (of_records.initial(), record.timestamp)
                aggregate = of_records.aggregated(record, before)
                latest_ms = max(latest_ms, record.timestamp)
                self._put(window, aggregate, latest_ms)
                result = of_records.serialized_result(aggregate)
                yield record._replace(key=self._windowed_key(window), value=result, timestamp=latest_ms)


class _Sessions(_Windows):
    """The open sessions of a key."""

    def _updates(self, record: KeyRecord) -> Iterator[KeyRecord]:
        """Merge all sessions within the gap of a record: delete them, and add the merged session."""
        aggregation = self._aggregation
        sessions = self._within_gap(record.timestamp)
        merged_session = merged(record.timestamp, sessions)
        if self._is_closed(merged_session):
            return
        earlier = [aggregate for aggregate, _ in filter(None, map(self._pop, sessions))]
        aggregate = aggregation.of_records.aggregated(record, aggregation.united(record, earlier))
        self._put(merged_session, aggregate, merged_session.end_ms)
        deleted = [] if merged_session.start_ms == merged_session.end_ms else sessions
        yield from (self._update(record, session, None) for session in deleted)
        yield self._update(record, merged_session, aggregation.of_records.serialized_result(aggregate))

    def _update(self, record: KeyRecord, session: Window, result: bytes | None) -> KeyRecord:
        return record._replace(key=self._windowed_key(session), value=result, timestamp=session.end_ms, headers=None)

    def _within_gap(self, time_ms: int) -> list[Window]:
        """Return the sessions to which a record of this time belongs."""
        windows = self._aggregation.windows
        assert isinstance(windows, SessionWindows)
        first_ms = time_ms - windows.gap_ms
        last_ms = time_ms + windows.gap_ms
        sessions = chain(self._rows, self._changed)
        return sorted(session for session in sessions if session.end_ms >= first_ms and session.start_ms <= last_ms)

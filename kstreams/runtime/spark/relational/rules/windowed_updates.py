"""Windowed aggregations record by record: every update of a window, or the final results of functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

import msgspec

from kstreams.dsl import graph as g
from kstreams.dsl.rules.windows import merger_of
from kstreams.errors import TopologyError
from kstreams.kernel.decoders import msgpack_decoder
from kstreams.record import Window
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.keyed_state import UNKNOWN, KeyedState, KeyRecord, SavedState, by_key
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.rules.record_aggregation import RecordAggregation
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.runtime.spark.relational.windowed_query import delay_of, is_final
from kstreams.serdes.windowed import session_key, time_window_key
from kstreams.windows import SessionWindows, TimeWindows
from kstreams.windows.kinds import merged

_Rows: TypeAlias = list[tuple[int, int, bytes, int]]
"""The state in Spark: start and end of each window, its serialized aggregate, and the time of the aggregate."""

_decode = msgpack_decoder(_Rows).decode


class _Aggregation(NamedTuple):
    """A windowed aggregation; `merge` is the function that makes one aggregate of those of two sessions.

    A window is closed when the time `closes_after_ms` after its end was seen.
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
            raise TopologyError("sessions that become one need a merger")
        for other in aggregates:
            aggregate = merge.of_record((record.origin, record.offset), (record.key,), aggregate, other)
        return aggregate


def windowed_updates(node: g.WindowedAggregate, build: RelationalLowering) -> Frame:
    """Aggregate record by record; the state of a window is deleted when the window closes."""
    windows = node.windows
    assert isinstance(windows, TimeWindows | SessionWindows)
    frame = build.parent(node)
    of_records = RecordAggregation.of(node, build)
    merger = merger_of(node, of_records.lowered)
    merge = None if merger is None else build.function(node, merger, (frame.key,))
    final = is_final(node, build.typed)
    delay_ms = delay_of(node, build.typed)
    aggregation = _Aggregation(windows, of_records, merge, final, delay_ms, *_kind_of(windows))
    keyed = frame.where(F.col("key").isNotNull())
    state = _Sessions if merger else _TimeWindows
    rows = by_key([keyed], state, (aggregation,), delay_ms=delay_ms)
    return Frame(rows, build.serde(node, "key"), of_records.result)


def _kind_of(windows: TimeWindows | SessionWindows) -> tuple[int, Callable[[bytes, Window], bytes]]:
    if isinstance(windows, TimeWindows):
        return windows.grace_ms, time_window_key
    return windows.closes_after_ms + 1, session_key  # the end of a session is its last record: time must pass it


class _Windows(KeyedState):
    """The open windows of a key: the state of Spark with the changes of this step."""

    def __init__(self, aggregation: _Aggregation, key: bytes, saved: SavedState, seen_ms: int) -> None:
        self._aggregation = aggregation
        self._key = bytes(key)
        self._seen_ms = seen_ms
        rows = [] if saved.state is None else _decode(saved.state)
        self._rows = {Window(start, end): (state, timestamp) for start, end, state, timestamp in rows}
        self._changed: dict[Window, tuple[object, int]] = {}

    def due(self, *, is_over: bool) -> list[KeyRecord]:
        """Delete closed windows, and return them if only final results are emitted."""
        closed = [place for place in sorted(self._rows) if self._is_closed(place)]
        gone = [(place, self._rows.pop(place)) for place in closed]
        return [self._result(*closed_window) for closed_window in gone] if self._aggregation.is_final else []

    def take(self, record: KeyRecord) -> Iterable[KeyRecord]:
        updates = list(self._updates(record))
        return () if self._aggregation.is_final else updates

    @abstractmethod
    def _updates(self, record: KeyRecord) -> Iterator[KeyRecord]:
        """Add a record to its windows, and return their updates."""

    def saved_state(self) -> SavedState:
        """Return all windows as state until the next of them closes, or for updates until all are closed."""
        aggregation = self._aggregation
        stored = self._aggregation.of_records.serialized
        changed = {place: (stored(aggregate), latest) for place, (aggregate, latest) in self._changed.items()}
        rows: _Rows = [(*place, *state) for place, state in chain(self._rows.items(), changed.items())]
        if not rows:
            return UNKNOWN
        ends = [end for _, end, _, _ in rows]
        end_ms = min(ends) if aggregation.is_final else max(ends)
        return SavedState(msgspec.msgpack.encode(rows), end_ms + aggregation.closes_after_ms - aggregation.delay_ms - 2)

    def _is_closed(self, place: Window) -> bool:
        return place.end_ms + self._aggregation.closes_after_ms <= self._seen_ms

    def _take_out(self, place: Window) -> tuple[object, int] | None:
        """Remove a window, and return its aggregate and the time of the aggregate."""
        if place in self._rows:
            state, timestamp = self._rows.pop(place)
            return self._aggregation.of_records.restored(state), timestamp
        return self._changed.pop(place, None)

    def _put(self, place: Window, aggregate: object, timestamp: int) -> None:
        """Set the aggregate of a window, unless it is None."""
        if aggregate is not None:
            self._changed[place] = aggregate, timestamp

    def _windowed(self, place: Window) -> bytes:
        return self._aggregation.windowed_key(self._key, place)

    def _result(self, place: Window, aggregate_and_time: tuple[bytes, int]) -> KeyRecord:
        (state, timestamp) = aggregate_and_time
        of_records = self._aggregation.of_records
        value = of_records.shown(of_records.restored(state))
        return KeyRecord(0, 0, place.start_ms, timestamp, self._windowed(place), value, None)


class _TimeWindows(_Windows):
    """Add a record to all open windows that contain it."""

    def _updates(self, record: KeyRecord) -> Iterator[KeyRecord]:
        of_records = self._aggregation.of_records
        windows = self._aggregation.windows
        assert isinstance(windows, TimeWindows)
        places = (Window(start, start + windows.size_ms) for start in windows.starts_at(record.timestamp))
        for place in places:
            if not self._is_closed(place):
                before, latest = self._take_out(place) or (of_records.initial(), record.timestamp)
                aggregate = of_records.aggregated(record, before)
                latest = max(latest, record.timestamp)
                self._put(place, aggregate, latest)
                result = of_records.shown(aggregate)
                yield record._replace(key=self._windowed(place), value=result, timestamp=latest)


class _Sessions(_Windows):
    """Merge all sessions within the gap of a record: delete them, and add the merged session."""

    def _updates(self, record: KeyRecord) -> Iterator[KeyRecord]:
        aggregation = self._aggregation
        touched = self._touched(record.timestamp)
        place = merged(record.timestamp, touched)
        if self._is_closed(place):
            return
        earlier = [aggregate for aggregate, _ in filter(None, map(self._take_out, touched))]
        aggregate = aggregation.of_records.aggregated(record, aggregation.united(record, earlier))
        self._put(place, aggregate, place.end_ms)
        gone = [] if place.start_ms == place.end_ms else touched
        for session, result in (
            *((session, None) for session in gone),
            (place, aggregation.of_records.shown(aggregate)),
        ):
            yield record._replace(key=self._windowed(session), value=result, timestamp=session.end_ms, headers=None)

    def _touched(self, at_ms: int) -> list[Window]:
        windows = self._aggregation.windows
        places = chain(self._rows, self._changed)
        assert isinstance(windows, SessionWindows)
        first_ms = at_ms - windows.gap_ms
        last_ms = at_ms + windows.gap_ms
        return sorted(place for place in places if place.end_ms >= first_ms and place.start_ms <= last_ms)

"""Windowed aggregations record by record: every update of a window, or the final results of functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from kstreams.dsl import graph as g
from kstreams.dsl.rules.aggregates import Lowered, lower
from kstreams.dsl.rules.windows import merger_of
from kstreams.record import Window
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.keyed_state import Kept, KeyRecord, by_key
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.runtime.spark.relational.windowed_query import delay_of, is_final
from kstreams.serdes import Serde
from kstreams.windows import SessionWindows, TimeWindows
from kstreams.windows.session import merged


class _Window(msgspec.Struct, array_like=True):
    """A window of a key, with its aggregate."""

    start_ms: int
    end_ms: int
    state: bytes
    timestamp: int


class _Aggregation(NamedTuple):
    """A windowed aggregation; `step` and `merge` are functions of its aggregator, `merge` that of sessions."""

    windows: TimeWindows | SessionWindows
    lowered: Lowered
    step: UserFunction
    merge: UserFunction | None
    result: Serde[Any]
    is_final: bool
    delay_ms: int

    def closes_ms(self, end_ms: int) -> int:
        """The time that must have been seen for a window to be closed."""
        if isinstance(self.windows, SessionWindows):
            return end_ms + self.windows.closes_after_ms + 1  # time has passed the end of a session, its last record
        return end_ms + self.windows.grace_ms

    def aggregated(self, record: KeyRecord, aggregate: Any) -> Any:
        """What a record makes of an aggregate."""
        time = (record.timestamp,) if self.lowered.aggregator.timed else ()
        return self.step.of_record((record.origin, record.offset), (record.key, record.value), aggregate, *time)

    def shown(self, aggregate: Any) -> bytes | None:
        """What others see of an aggregate, as bytes."""
        result = self.lowered.aggregator.result
        return self.result.serialize(aggregate if result is None else result(aggregate))

    def kept(self, held: list[_Window]) -> Kept:
        """What a key's windows are, until the next of them closes or, of updates, all have."""
        if not held:
            return Kept()
        closes = (self.closes_ms(window.end_ms) for window in held)
        due_ms = min(closes) if self.is_final else max(closes)
        return Kept(msgspec.msgpack.encode(held), due_ms - self.delay_ms - 2)


def windowed_updates(node: g.WindowedAggregate, build: RelationalLowering) -> Frame:
    """A window is forgotten when it has closed."""
    assert isinstance(node.windows, TimeWindows | SessionWindows)
    frame, lowered = build.parent(node), lower(node, build)
    key, result, merger = build.serde(node, "key"), build.serde(node, "value"), merger_of(node, lowered)
    step = build.function(node, lowered.aggregator.step, (frame.key, frame.value))
    merge = None if merger is None else build.function(node, merger, (frame.key,))
    final, delay_ms = is_final(node, build.typed), delay_of(node, build.typed)
    given = (_Aggregation(node.windows, lowered, step, merge, result, final, delay_ms),)
    keyed = frame.where(F.col("key").isNotNull())
    return Frame(by_key([keyed], _taken, given, delay_ms=delay_ms, close=_closed), key, result)


def _taken(aggregation: _Aggregation, kept: Kept, record: KeyRecord, seen_ms: int) -> tuple[Kept, list[KeyRecord]]:
    """A record goes into its windows; those that have closed are gone already."""
    held = _held(kept)
    take = _into_sessions if isinstance(aggregation.windows, SessionWindows) else _into_windows
    made = take(aggregation, held, record, seen_ms)
    return aggregation.kept(list(held.values())), [] if aggregation.is_final else made


_Held = dict[Window, _Window]


def _held(kept: Kept) -> _Held:
    found = [] if kept.state is None else msgspec.msgpack.decode(kept.state, type=list[_Window])
    return {Window(window.start_ms, window.end_ms): window for window in found}


def _into_windows(aggregation: _Aggregation, held: _Held, record: KeyRecord, seen_ms: int) -> list[KeyRecord]:
    spec, made = aggregation.windows, []
    assert isinstance(spec, TimeWindows)
    for start in spec.starts_at(record.timestamp):
        place = Window(start, start + spec.size_ms)
        if aggregation.closes_ms(place.end_ms) > seen_ms:
            old = held.get(place)
            latest = record.timestamp if old is None else max(old.timestamp, record.timestamp)
            initial = aggregation.lowered.aggregator.initial
            before = initial() if old is None else aggregation.lowered.state.deserialize(old.state)
            value = _put(aggregation, held, place, aggregation.aggregated(record, before), latest)
            key = _key(record, start.to_bytes(8, "big", signed=True))
            made.append(record._replace(key=key, value=value, timestamp=latest))
    return made


def _into_sessions(aggregation: _Aggregation, held: _Held, record: KeyRecord, seen_ms: int) -> list[KeyRecord]:
    """All sessions within the gap become one: each of them is deleted, and one takes their place."""
    gap_ms, at = aggregation.windows.gap_ms, record.timestamp  # type: ignore[union-attr]
    touched = [place for place in sorted(held) if place.start_ms - gap_ms <= at <= place.end_ms + gap_ms]
    place = merged(at, touched)
    if aggregation.closes_ms(place.end_ms) <= seen_ms:
        return []
    earlier = [aggregation.lowered.state.deserialize(held.pop(session).state) for session in touched]
    aggregate = aggregation.aggregated(record, _merged(aggregation, record, earlier))
    value = _put(aggregation, held, place, aggregate, place.end_ms)
    gone = [] if place.start_ms == place.end_ms else touched
    changes = [*((session, None) for session in gone), (place, value)]
    return [
        record._replace(key=_key(record, _times(session)), value=shown, timestamp=session.end_ms, headers=None)
        for session, shown in changes
    ]


def _merged(aggregation: _Aggregation, record: KeyRecord, earlier: Iterable[Any]) -> Any:
    aggregate, merge = aggregation.lowered.aggregator.initial(), aggregation.merge
    assert merge is not None
    for other in earlier:
        aggregate = merge.of_record((record.origin, record.offset), (record.key,), aggregate, other)
    return aggregate


def _put(aggregation: _Aggregation, held: _Held, place: Window, aggregate: Any, timestamp: int) -> bytes | None:
    """The window has a new aggregate, or is deleted; what others see of it."""
    if aggregate is None:
        held.pop(place, None)
        return None
    held[place] = _Window(*place, aggregation.lowered.state.serialize(aggregate), timestamp)
    return aggregation.shown(aggregate)


def _closed(aggregation: _Aggregation, key: bytes, kept: Kept, seen_ms: int) -> tuple[Kept, list[KeyRecord]]:
    """The windows that are closed go, as results where only final ones are asked for."""
    held = _held(kept)
    over = [place for place in sorted(held) if aggregation.closes_ms(place.end_ms) <= seen_ms]
    gone = [held.pop(place) for place in over]
    results = [_result(aggregation, key, window) for window in gone] if aggregation.is_final else []
    return aggregation.kept(list(held.values())), results


def _result(aggregation: _Aggregation, key: bytes, window: _Window) -> KeyRecord:
    value = aggregation.shown(aggregation.lowered.state.deserialize(window.state))
    is_session = isinstance(aggregation.windows, SessionWindows)
    times = _times((window.start_ms, window.end_ms)) if is_session else _times((window.start_ms,))
    return KeyRecord(0, 0, window.start_ms, window.timestamp, key + times, value, None)


def _key(record: KeyRecord, times: bytes) -> bytes:
    assert record.key is not None
    return record.key + times


def _times(place: tuple[int, ...]) -> bytes:
    """What stands behind the key: the start of a window, or end and start of a session."""
    return b"".join(time.to_bytes(8, "big", signed=True) for time in reversed(place))

"""Updates of windows by Python functions: each record changes the aggregates of its windows, and the new ones go on."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from kstreams.dsl import graph as g
from kstreams.dsl.rules.aggregates import Lowered, lower
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.keyed_state import Kept, KeyRecord, by_key
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.rules.keyed import check_aggregate
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.runtime.spark.relational.windowed_query import delay_of, is_final
from kstreams.serdes import Serde
from kstreams.windows import TimeWindows


class _Window(msgspec.Struct, array_like=True):
    """The aggregate of one window of a key."""

    state: bytes
    timestamp: int


_WINDOWS = dict[int, _Window]
"""By start."""


class _Updates(NamedTuple):
    """A windowed aggregation; `step` is the function of its aggregator."""

    windows: TimeWindows
    lowered: Lowered
    step: UserFunction
    key: Serde[Any]
    result: Serde[Any]


def windowed_updates(node: g.WindowedAggregate, build: RelationalLowering) -> Frame:
    """A key is forgotten when all its windows have closed."""
    windows = node.windows
    assert isinstance(windows, TimeWindows)
    frame, lowered = build.parent(node), lower(node, build)
    key, result = build.serde(node, "key"), build.serde(node, "value")
    step = build.function(node, lowered.aggregator.step, (frame.key, frame.value))
    keyed = frame.where(F.col("key").isNotNull())
    updates = _Updates(windows, lowered, step, key, result)
    return Frame(by_key([keyed], _updated, (updates,), delay_ms=delay_of(node)), key, result)


def _updated(updates: _Updates, kept: Kept, record: KeyRecord, seen_ms: int) -> tuple[Kept, list[KeyRecord]]:
    spec = updates.windows
    held = {} if kept.state is None else msgspec.msgpack.decode(kept.state, type=_WINDOWS)
    open_ = {start: window for start, window in held.items() if _is_open(spec, start, seen_ms)}
    made = []
    for start in spec.starts_at(record.timestamp):
        if _is_open(spec, start, seen_ms):
            made.append(_of_window(updates, open_, start, record))
    latest = max(kept.timestamp, record.timestamp)
    return Kept(msgspec.msgpack.encode(open_) if open_ else None, latest), made


def _is_open(spec: TimeWindows, start: int, seen_ms: int) -> bool:
    return start + spec.size_ms + spec.grace_ms > seen_ms


def _of_window(updates: _Updates, held: dict[int, _Window], start: int, record: KeyRecord) -> KeyRecord:
    aggregator, serde, window = updates.lowered.aggregator, updates.lowered.state, held.get(start)
    old = aggregator.initial() if window is None else serde.deserialize(window.state)
    time = (record.timestamp,) if aggregator.timed else ()
    new = updates.step.of_record((record.origin, record.offset), (record.key, record.value), old, *time)
    latest = record.timestamp if window is None else max(window.timestamp, record.timestamp)
    assert record.key is not None
    key = record.key + start.to_bytes(8, "big", signed=True)
    if new is None:
        held.pop(start, None)
        return record._replace(key=key, value=None, timestamp=latest)
    held[start] = _Window(serde.serialize(new), latest)
    shown = new if aggregator.result is None else aggregator.result(new)
    return record._replace(key=key, value=updates.result.serialize(shown), timestamp=latest)


def check_windowed_updates(node: g.WindowedAggregate, typed: TypedGraph) -> str | None:
    if is_final(node, typed):
        return "its final results are those of a Python function"
    return check_aggregate(node, typed)

"""Deduplication: Spark keeps the times of the records of each deduplication key."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.kernel.decoders import msgpack_decoder
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.windowed_query import delay_of
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.keyed_state import NO_STATE, KeyedState, KeyRecord, SavedState, by_key
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import unknown_type
from kstreams.runtime.spark.relational.rules.function_calls import FunctionCall

_decode = msgpack_decoder(list[int]).decode

_KEY = "_deduplication_key"
"""The column of deduplication keys."""


def deduplicate(node: g.Deduplicate, build: RelationalLowering) -> Frame:
    """Process the records of each deduplication key in Python."""
    frame = build.parent(node)
    settings = node.supplier
    key = FunctionCall.on_rows(node, settings.part, frame, True, build).serialized(settings.serde)
    keyed = replace(frame, rows=frame.rows.withColumn(_KEY, key))
    arguments = (settings.within_ms, settings.retention_ms)
    delay_ms = delay_of(node, build.typed)
    return Frame(by_key([keyed], _RecordTimes, arguments, delay_ms=delay_ms, key_column=_KEY), frame.key, frame.value)


class _RecordTimes(KeyedState):
    """The state of a deduplication key: the times of its records."""

    def __init__(self, within_ms: int, retention_ms: int, key: bytes | None, saved: SavedState, latest_ms: int) -> None:
        self._within_ms = within_ms
        self._retention_ms = retention_ms
        self._key = key
        self._latest_ms = latest_ms
        self._times = [] if saved.state is None else _decode(saved.state)
        self._latest_of_key_ms = saved.timestamp

    def due(self, *, has_timed_out: bool) -> tuple[()]:
        if has_timed_out:
            self._times = []
        return ()

    def take(self, record: KeyRecord) -> list[KeyRecord]:
        if self._key is None:
            return [record]
        if any(abs(time - record.timestamp) <= self._within_ms for time in self._times):
            return []
        self._latest_of_key_ms = max(self._latest_of_key_ms, record.timestamp)
        since_ms = max(self._latest_of_key_ms, self._latest_ms) - self._retention_ms
        self._times = [time for time in (*self._times, record.timestamp) if time > since_ms]
        return [record]

    def saved_state(self) -> SavedState:
        return SavedState(msgspec.msgpack.encode(self._times), self._latest_of_key_ms) if self._times else NO_STATE


def check_deduplicate(node: g.Deduplicate, typed: TypedGraph) -> str | None:
    types = typed.types[node.name]
    return unknown_type(types.key, "key") or unknown_type(types.value, "value")


ACROSS = (
    "duplicates are found across partitions too; a record that is later than about twice the deduplication interval is "
    "dropped and not counted"
)

FORMS: dict[type[g.Node], SparkForm] = {
    g.Deduplicate: SparkForm(check=check_deduplicate, lower=deduplicate, difference=ACROSS),
}

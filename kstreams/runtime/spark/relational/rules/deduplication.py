"""Deduplication: Spark keeps the times at which each mark was seen."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.kernel.decoders import msgpack_decoder
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.keyed_state import UNKNOWN, KeyedState, KeyRecord, SavedState, by_key
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import unknown_type
from kstreams.runtime.spark.relational.rules.function_calls import FunctionCall
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.windowed_query import delay_of

_decode = msgpack_decoder(list[int]).decode


def deduplicate(node: g.Deduplicate, build: RelationalLowering) -> Frame:
    """Process the records of each mark in Python."""
    frame = build.parent(node)
    settings = node.supplier
    mark = FunctionCall.on_rows(node, settings.part, frame, True, build).serialized(settings.serde)
    marked = replace(frame, rows=frame.rows.withColumn("_mark", mark))
    arguments = (settings.within_ms, settings.retention_ms)
    delay_ms = delay_of(node, build.typed)
    return Frame(by_key([marked], _Times, arguments, delay_ms=delay_ms, mark="_mark"), frame.key, frame.value)


class _Times(KeyedState):
    """The state of a mark: the times of its records."""

    def __init__(self, within_ms: int, retention_ms: int, mark: bytes | None, saved: SavedState, seen_ms: int) -> None:
        self._within_ms = within_ms
        self._retention_ms = retention_ms
        self._mark = mark
        self._seen_ms = seen_ms
        self._times = [] if saved.state is None else _decode(saved.state)
        self._latest = saved.timestamp

    def due(self, *, is_over: bool) -> tuple[()]:
        if is_over:
            self._times = []
        return ()

    def take(self, record: KeyRecord) -> list[KeyRecord]:
        if self._mark is None:
            return [record]
        if any(abs(time - record.timestamp) <= self._within_ms for time in self._times):
            return []
        self._latest = max(self._latest, record.timestamp)
        since_ms = max(self._latest, self._seen_ms) - self._retention_ms
        self._times = [time for time in (*self._times, record.timestamp) if time > since_ms]
        return [record]

    def saved_state(self) -> SavedState:
        return SavedState(msgspec.msgpack.encode(self._times), self._latest) if self._times else UNKNOWN


def check_deduplicate(node: g.Deduplicate, typed: TypedGraph) -> str | None:
    types = typed.types[node.name]
    return unknown_type(types.key, "key") or unknown_type(types.value, "value")


ACROSS = (
    "duplicates are found across partitions too; a record that comes later than about twice the time of duplicates is "
    "dropped uncounted"
)

FORMS: dict[type[g.Node], SparkForm] = {
    g.Deduplicate: SparkForm(check=check_deduplicate, lower=deduplicate, difference=ACROSS),
}

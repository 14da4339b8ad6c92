"""Deduplication: Spark keeps the times at which each mark was seen."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.keyed_state import Kept, KeyRecord, by_key
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import unknown_type
from kstreams.runtime.spark.relational.rules.stateless import mapped
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.windowed_query import delay_of

_TIMES = list[int]


def deduplicate(node: g.Deduplicate, build: RelationalLowering) -> Frame:
    """The records go mark by mark through Python."""
    frame, settings = build.parent(node), node.supplier
    mark = mapped(node, settings.mark, True, build, settings.serde)
    marked = replace(frame, rows=frame.rows.withColumn("_mark", mark))
    given = (settings.within_ms, settings.retention_ms)
    return Frame(
        by_key([marked], _first, given, delay_ms=delay_of(node, build.typed), mark="_mark"), frame.key, frame.value
    )


def _first(
    within_ms: int, retention_ms: int, mark: bytes | None, kept: Kept, record: KeyRecord, seen_ms: int
) -> tuple[Kept, list[KeyRecord]]:
    if mark is None:
        return kept, [record]
    times = [] if kept.state is None else msgspec.msgpack.decode(kept.state, type=_TIMES)
    if any(abs(time - record.timestamp) <= within_ms for time in times):
        return kept, []
    latest = max(kept.timestamp, record.timestamp)
    still = [time for time in (*times, record.timestamp) if time > max(latest, seen_ms) - retention_ms]
    return Kept(msgspec.msgpack.encode(still), latest), [record]


def check_deduplicate(node: g.Deduplicate, typed: TypedGraph) -> str | None:
    made = typed.types[node.name]
    return unknown_type(made.key, "key") or unknown_type(made.value, "value")


ACROSS = (
    "duplicates are found across partitions too; a record that comes later than about twice the time of duplicates is "
    "dropped uncounted"
)

FORMS: dict[type[g.Node], SparkForm] = {
    g.Deduplicate: SparkForm(check=check_deduplicate, lower=deduplicate, difference=ACROSS),
}

"""The topologies of `recorder/HeaderCases.java` in Python, by the same names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import kstreams as ks

Table = ks.KTable[Any, Any]
Stream = ks.KStream[str, str]


def a(builder: ks.StreamsBuilder) -> Stream:
    return builder.stream("a", key=str, value=str)


def b(builder: ks.StreamsBuilder) -> Stream:
    return builder.stream("b", key=str, value=str)


def table_a(builder: ks.StreamsBuilder, store: str | None = None) -> ks.KTable[str, str]:
    return builder.table("a", key=str, value=str, materialized=store)


def table_b(builder: ks.StreamsBuilder) -> ks.KTable[str, str]:
    return builder.table("b", key=str, value=str)


def out(stream: ks.KStream[Any, Any]) -> None:
    stream.to("out", key=str, value=str)


def out_table(table: Table) -> None:
    out(table.to_stream().map_values(shown, value=str))


def out_windows(table: Table) -> None:
    stream = table.to_stream().map_values(shown, value=str)
    out(stream.select_key(lambda key, value: f"{key.key}@{key.window.start_ms}-{key.window.end_ms}", key=str))


def shown(value: Any) -> str | None:
    return None if value is None else str(value)


def joined(left: str | None, right: str | None) -> str:
    return f"{'null' if left is None else left}+{'null' if right is None else right}"


def appended(key: str, value: str, aggregate: str) -> str:
    return aggregate + value


class Adding(ks.Processor[str, str, str, str]):
    """Forwards each record with one more header."""

    def init(self, context: ks.ProcessorContext[str, str]) -> None:
        self.context = context

    def process(self, record: ks.Record[str, str]) -> None:
        self.context.forward(record.with_headers([*record.headers, ("more", b"1")]))


class AddingValues(ks.FixedKeyProcessor[str, str, str]):
    """The same for values."""

    def init(self, context: ks.FixedKeyProcessorContext[str, str]) -> None:
        self.context = context

    def process(self, record: ks.FixedKeyRecord[str, str]) -> None:
        self.context.forward(record.with_headers([*record.headers, ("more", b"1")]))


class Last(ks.Processor[str, str, str, str]):
    """Forwards the value that the key had before, which a store keeps."""

    def init(self, context: ks.ProcessorContext[str, str]) -> None:
        self.context = context
        self.store = context.get_state_store("last")

    def process(self, record: ks.Record[str, str]) -> None:
        before = self.store.get(record.key)
        self.context.forward(record.with_value("null" if before is None else before))
        self.store.put(record.key, record.value)


class Punctual(ks.Processor[str, str, str, str]):
    """Forwards new records from a punctuator alone."""

    def init(self, context: ks.ProcessorContext[str, str]) -> None:
        self.context = context
        context.schedule(timedelta(seconds=50), ks.PunctuationType.STREAM_TIME, self.tick)

    def process(self, record: ks.Record[str, str]) -> None:
        """Nothing comes of a record."""

    def tick(self, time: int) -> None:
        self.context.forward(ks.Record(key="tick", value="t", timestamp=time))


class Twice(Adding):
    """Forwards each record with one more header, and then as it was."""

    def process(self, record: ks.Record[str, str]) -> None:
        super().process(record)
        self.context.forward(record)


class Reference(Adding):
    """Forwards each record when the next one comes."""

    held: ks.Record[str, str] | None = None

    def process(self, record: ks.Record[str, str]) -> None:
        if self.held is not None:
            self.context.forward(self.held)
        self.held = record


def with_one_more(record: ks.Record[str, str]) -> ks.ValueTimestampHeaders[str]:
    return ks.ValueTimestampHeaders(record.value, record.timestamp, one_more(record.headers))


class KeptHeaders(ks.Processor[str, str, str, str]):
    """Forwards what the store has for the key, all of it, under its headers, and keeps the record with one more."""

    def init(self, context: ks.ProcessorContext[str, str]) -> None:
        self.context = context
        self.store = context.get_state_store("kept")

    def process(self, record: ks.Record[str, str]) -> None:
        self.forward(self.store.get(record.key))
        row = with_one_more(record)
        self.forward(self.store.put_if_absent("first", row))
        self.store.put(record.key, row)
        row.headers.append(("late", b"1"))  # type: ignore[attr-defined]
        for _, value in self.store.all():
            self.forward(value)

    def forward(self, row: ks.ValueTimestampHeaders[str] | None) -> None:
        found = ks.Record(key="none", value="none") if row is None else in_place_of(row, "some", row.timestamp)
        self.context.forward(found)


class KeptHeadersOfWindows(KeptHeaders):
    """The same of windows of three seconds."""

    def process(self, record: ks.Record[str, str]) -> None:
        value = None if record.value is None else with_one_more(record)
        self.store.put(record.key, value, record.timestamp // 3_000 * 3_000)
        for window, row in self.store.all():
            self.context.forward(in_place_of(row, f"{window.key}@{window.window.start_ms}", row.timestamp))


class KeptHeadersOfSessions(KeptHeaders):
    """The same of sessions of one second."""

    def process(self, record: ks.Record[str, str]) -> None:
        session = ks.Windowed(record.key, ks.Window(record.timestamp, record.timestamp + 1_000))
        self.store.put(session, ks.AggregationWithHeaders(record.value, one_more(record.headers)))
        for window, row in self.store.find_sessions(record.key, 0, 2**62):
            self.context.forward(in_place_of(row, f"{window.key}@{window.window.start_ms}", window.window.end_ms))


def in_place_of(row: Any, key: str, timestamp: int) -> ks.Record[str, str]:
    return ks.Record(key=key, value=row[0], timestamp=timestamp, headers=row.headers)


def kept(s: ks.StreamsBuilder, store: Any, processor: Any) -> None:
    s.add_state_store(store)
    out(a(s).process(processor, stores=["kept"], key=str, value=str))


KEPT: dict[str, Any] = {"name": "kept", "key": str, "value": str}


class Exclaiming(ks.FixedKeyProcessor[str, str, str]):
    """The value with a mark, of a table."""

    def init(self, context: ks.FixedKeyProcessorContext[str, str]) -> None:
        self.context = context

    def process(self, record: ks.FixedKeyRecord[str, str]) -> None:
        self.context.forward(record.with_value(None if record.value is None else record.value + "!"))


def self_join(s: ks.StreamsBuilder) -> None:
    stream = a(s)
    out(stream.join(stream, joined, windows=WITHIN))


def process_store(s: ks.StreamsBuilder) -> None:
    s.add_state_store(ks.Stores.key_value("last", key=str, value=str, store="memory"))
    out(a(s).process(Last, stores=["last"], key=str, value=str))


def process_beside(s: ks.StreamsBuilder) -> None:
    stream = a(s)
    out(stream.process(Adding, key=str, value=str))
    out(stream.map_values(lambda value: f"{'null' if value is None else value} beside", value=str))


SECOND = timedelta(seconds=1)
TUMBLING = ks.TimeWindows(size=3 * SECOND, grace=10 * SECOND)
SESSIONS = ks.SessionWindows(gap=3 * SECOND, grace=10 * SECOND)
WITHIN = ks.JoinWindows.of(2 * SECOND, grace=SECOND)
HISTORY = ks.Materialized("t", history_retention=300 * SECOND)
AT_CLOSE = ks.EmitStrategy.ON_WINDOW_CLOSE


def exclaimed(value: str | None) -> str:
    return f"{'null' if value is None else value}!"


def one_more(headers: Any) -> list[Any]:
    return [*headers, ("more", b"1")]


def grouped(builder: ks.StreamsBuilder) -> ks.KGroupedStream[str, str]:
    return a(builder).group_by_key()


def in_one_group(builder: ks.StreamsBuilder) -> ks.KGroupedTable[str, str]:
    return table_a(builder).group_by(lambda key, value: ("g", value), key=str, value=str)


def cogrouped(builder: ks.StreamsBuilder) -> Table:
    other = b(builder).group_by_key()
    return grouped(builder).cogroup(appended).cogroup(other, appended).aggregate(str, value=str)


def by_letter(value: str) -> str:
    return "k" + value[1]


CASES: dict[str, Callable[[ks.StreamsBuilder], None]] = {
    "filter": lambda s: out(a(s).filter(lambda key, value: value is not None)),
    "map": lambda s: out(a(s).map(lambda key, value: (key + "!", value), key=str, value=str)),
    "map_values": lambda s: out(a(s).map_values(exclaimed)),
    "flat_map": lambda s: out(a(s).flat_map(lambda key, value: [(key, "1"), (key, "2")], key=str, value=str)),
    "flat_map_values": lambda s: out(a(s).flat_map_values(lambda value: ["1", "2"], value=str)),
    "select_key": lambda s: out(a(s).select_key(lambda key, value: "x", key=str)),
    "merge": lambda s: out(a(s).merge(b(s))),
    "repartition": lambda s: out(a(s).select_key(lambda key, value: "x", key=str).repartition()),
    "split": lambda s: out(
        a(s).split(name="by-").branch(lambda key, value: value is not None, name="some").no_default_branch()["by-some"]
    ),
    "process": lambda s: out(a(s).process(Adding, key=str, value=str)),
    "process_values": lambda s: out(a(s).process_values(AddingValues, value=str)),
    "process_beside": process_beside,
    "process_store": process_store,
    "punctuate": lambda s: out(a(s).process(Punctual, key=str, value=str)),
    "to_table": lambda s: out_table(a(s).to_table()),
    "to_table_stored": lambda s: out_table(a(s).to_table(materialized="t")),
    "table": lambda s: out_table(table_a(s)),
    "table_stored": lambda s: out_table(table_a(s, "t")),
    "table_filter": lambda s: out_table(table_a(s, "t").filter(lambda key, value: value != "v2")),
    "table_map_values": lambda s: out_table(table_a(s, "t").map_values(exclaimed, materialized="m")),
    "table_group_count": lambda s: out_table(in_one_group(s).count()),
    "table_group_reduce": lambda s: out_table(in_one_group(s).reduce(lambda x, y: x + y, lambda x, y: x)),
    "count": lambda s: out_table(grouped(s).count()),
    "reduce": lambda s: out_table(grouped(s).reduce(lambda x, y: x + y)),
    "aggregate": lambda s: out_table(grouped(s).aggregate(str, appended, value=str)),
    "group_by_count": lambda s: out_table(a(s).group_by(lambda key, value: "g", key=str).count()),
    "cogroup": lambda s: out_table(cogrouped(s)),
    "tumbling": lambda s: out_windows(grouped(s).windowed_by(TUMBLING).count()),
    "hopping": lambda s: out_windows(
        grouped(s).windowed_by(ks.TimeWindows(size=3 * SECOND, advance=SECOND, grace=10 * SECOND)).count()
    ),
    "sliding": lambda s: out_windows(
        grouped(s).windowed_by(ks.SlidingWindows(difference=3 * SECOND, grace=10 * SECOND)).count()
    ),
    "session": lambda s: out_windows(grouped(s).windowed_by(SESSIONS).count()),
    "tumbling_final": lambda s: out_windows(grouped(s).windowed_by(TUMBLING).emit_strategy(AT_CLOSE).count()),
    "session_final": lambda s: out_windows(grouped(s).windowed_by(SESSIONS).emit_strategy(AT_CLOSE).count()),
    "suppress_time": lambda s: out_table(grouped(s).count().suppress(ks.Suppressed.until_time_limit(2 * SECOND))),
    "suppress_windows": lambda s: out_windows(
        grouped(s).windowed_by(TUMBLING).count().suppress(ks.Suppressed.until_window_closes())
    ),
    "suppress_sessions": lambda s: out_windows(
        grouped(s).windowed_by(SESSIONS).count().suppress(ks.Suppressed.until_window_closes())
    ),
    "stream_join": lambda s: out(a(s).join(b(s), joined, windows=WITHIN)),
    "stream_left_join": lambda s: out(a(s).left_join(b(s), joined, windows=WITHIN)),
    "stream_outer_join": lambda s: out(a(s).outer_join(b(s), joined, windows=WITHIN)),
    "stream_table_join": lambda s: out(a(s).join(table_b(s), joined)),
    "stream_table_left_join": lambda s: out(a(s).left_join(table_b(s), joined)),
    "global_table_join": lambda s: out(
        a(s).join(s.global_table("b", key=str, value=str), joined, key_selector=lambda key, value: key)
    ),
    "table_join": lambda s: out_table(table_a(s).join(table_b(s), joined)),
    "table_left_join": lambda s: out_table(table_a(s).left_join(table_b(s), joined)),
    "table_outer_join": lambda s: out_table(table_a(s).outer_join(table_b(s), joined)),
    "foreign_key_join": lambda s: out_table(table_a(s).join(table_b(s), joined, foreign_key=by_letter)),
    "foreign_key_left_join": lambda s: out_table(table_a(s).left_join(table_b(s), joined, foreign_key=by_letter)),
    "kept_headers": lambda s: kept(
        s, ks.Stores.timestamped_key_value_with_headers(**KEPT, store="memory"), KeptHeaders
    ),
    "kept_headers_rocksdb_cached": lambda s: kept(
        s, ks.Stores.timestamped_key_value_with_headers(**KEPT, caching=True), KeptHeaders
    ),
    "kept_headers_of_windows": lambda s: kept(
        s,
        ks.Stores.timestamped_window_with_headers(**KEPT, retention=100 * SECOND, size=3 * SECOND, store="memory"),
        KeptHeadersOfWindows,
    ),
    "kept_headers_of_sessions": lambda s: kept(
        s, ks.Stores.session_with_headers(**KEPT, retention=100 * SECOND, store="memory"), KeptHeadersOfSessions
    ),
    "process_twice": lambda s: out(a(s).process(Twice, key=str, value=str)),
    "process_held": lambda s: out(a(s).process(Reference, key=str, value=str)),
    "process_cleared": lambda s: out(a(s).map_headers(lambda headers: []).map_values(exclaimed)),
    "table_transform_values": lambda s: out_table(table_a(s, "t").transform_values(Exclaiming, value=str)),
    "unlimited": lambda s: out_windows(grouped(s).windowed_by(ks.UnlimitedWindows()).count()),
    "to_table_versioned": lambda s: out_table(a(s).to_table(materialized=HISTORY)),
    "stream_table_grace_join": lambda s: out(
        a(s).join(s.table("b", key=str, value=str, materialized=HISTORY), joined, grace=2 * SECOND, name="j")
    ),
    "self_join": self_join,
    "to_table_to_stream_processed": lambda s: out(a(s).to_table().to_stream().map_headers(one_more)),
    "repartition_count": lambda s: out_table(
        a(s).map_headers(one_more).select_key(lambda key, value: "g", key=str).group_by_key().count()
    ),
}

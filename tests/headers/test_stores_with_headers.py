"""Stores that keep headers with their values: what a processor puts comes back, after any loss, and answers queries."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.native.lifecycle import State
from kstreams.state import open_task_state
from kstreams.state.tables.store_tables import as_table, rows_of_store
from kstreams.testing import MockProcessorContext, TopologyTestDriver
from tests.native.bundles import export, take
from tests.native.world import World, until
from tests.server.served import served

TRACE = (("trace", b"7"), ("trace", b""), ("none", None))
TYPES: dict[str, Any] = {"name": "kept", "key": str, "value": str}
LONG = 10**9
STORES = {
    "key-value": lambda **how: ks.Stores.timestamped_key_value_with_headers(**TYPES, **how),
    "window": lambda **how: ks.Stores.timestamped_window_with_headers(**TYPES, retention=LONG, size=10, **how),
    "session": lambda **how: ks.Stores.session_with_headers(**TYPES, retention=LONG, **how),
}
EACH = pytest.mark.parametrize("kind", STORES)
HOMES = pytest.mark.parametrize("home", ["rocksdb", "memory"])


class Keep(ks.Processor[str, str, str, str]):
    """Forwards what the store has for the key, under its headers, and keeps the record unless it asks for nothing."""

    def init(self, context: ks.ProcessorContext[str, str]) -> None:
        self.context = context
        self.kept = context.get_state_store("kept")

    def process(self, record: ks.Record[str, str]) -> None:
        row = self.before(record)
        if row is not None:
            self.context.forward(record.with_value(row[0]).with_headers(row.headers))
        if record.value != "?":
            self.keep(record)

    def before(self, record: ks.Record[str, str]) -> Any:
        return self.kept.get(record.key)

    def keep(self, record: ks.Record[str, str]) -> None:
        self.kept.put(record.key, ks.ValueTimestampHeaders(record.value, record.timestamp, record.headers))


class KeepInWindow(Keep):
    def before(self, record: ks.Record[str, str]) -> Any:
        return self.kept.get(record.key, 0)

    def keep(self, record: ks.Record[str, str]) -> None:
        self.kept.put(record.key, ks.ValueTimestampHeaders(record.value, record.timestamp, record.headers), 0)


class KeepInSession(Keep):
    def before(self, record: ks.Record[str, str]) -> Any:
        return self.kept.fetch_session(record.key, 0, 9)

    def keep(self, record: ks.Record[str, str]) -> None:
        session = ks.Windowed(record.key, ks.Window(0, 9))
        self.kept.put(session, ks.AggregationWithHeaders(record.value, record.headers))


PROCESSORS = {"key-value": Keep, "window": KeepInWindow, "session": KeepInSession}


def materialization(kind: str, **how: Any) -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.add_state_store(STORES[kind](**how))
    stream = builder.stream("in", key=str, value=str)
    stream.process(PROCESSORS[kind], stores=["kept"], key=str, value=str).to("out")
    return builder.build()


def write(world: World, rows: list[tuple[str, str, int]], headers: Any = ()) -> None:
    with world.log() as log, log.producer() as producer:
        for key, value, time in rows:
            producer.send("in", key.encode(), value.encode(), timestamp=time, headers=headers)


def came_out(world: World) -> list[tuple[Any, ...]]:
    source = TopicPartition("out", 0)
    with world.log() as log, log.consumer() as consumer:
        consumer.assign([source])
        end, found = consumer.end_offsets([source])[source], list[Any]()
        while consumer.position(source) < end:
            for batch in consumer.poll(0.1, 1_000):
                found += [(row.key, row.value, tuple(row.headers)) for row in batch.rows()]
    return found


ASKED = [("a", "?", 20), ("b", "?", 21), ("c", "?", 22)]
ANSWERED = [(b"a", b"A", TRACE), (b"b", b"B", TRACE)]


def written(world: World) -> None:
    """What `ASKED` asks for: a and b have headers, nobody has written c."""
    world.create("in")
    world.create("out")
    write(world, [("a", "A", 5), ("b", "B", 6)], TRACE)


@HOMES
@EACH
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_headers_come_back_from_the_changelog(world: World, kind: str, home: str, guarantee: str) -> None:
    written(world)
    world.run(materialization(kind, store=home), once=True, processing_guarantee=guarantee)
    shutil.rmtree(world.folder / "state")
    write(world, ASKED)
    world.run(materialization(kind, store=home), once=True, processing_guarantee=guarantee)
    assert came_out(world) == ANSWERED


@EACH
def test_headers_come_back_from_disk_alone(world: World, kind: str) -> None:
    written(world)
    world.run(materialization(kind, logging=False), once=True)
    write(world, ASKED)
    world.run(materialization(kind, logging=False), once=True)
    assert came_out(world) == ANSWERED


@pytest.mark.parametrize("logging", [True, False])
@EACH
def test_headers_go_with_an_export(world: World, kind: str, logging: bool) -> None:
    written(world)
    world.run(materialization(kind, logging=logging), once=True)
    export(world, materialization(kind, logging=logging))
    take(world, materialization(kind, logging=logging))
    write(world, ASKED)
    world.run(
        materialization(kind, logging=logging), once=True, state_dir=world.folder / ("new" if logging else "state")
    )
    assert came_out(world) == ANSWERED


def test_a_read_only_store_has_the_headers_of_its_topic(world: World) -> None:
    topology = ks.Topology().add_source("asking", "asking", key=str, value=str)
    topology.add_read_only_state_store(STORES["key-value"](), "source", "in", "keep", Keep, key=str, value=str)
    topology.add_processor("ask", Keep, "asking", stores=["kept"]).add_sink("out", "out", "ask", key=str, value=str)
    written(world)
    world.create("asking")
    world.run(topology, once=True)
    shutil.rmtree(world.folder / "state")
    world.write("asking", ASKED)
    world.run(topology, once=True)
    assert came_out(world) == ANSWERED


def test_typed_queries_give_what_they_give_in_kafka_streams(world: World) -> None:
    """Recorded from the real one: `KeyQuery` gives values, `TimestampedKeyQuery` no headers, windows have times."""
    written(world)
    stamped = ks.ValueAndTimestamp("A", 5)
    asked: dict[str, list[tuple[Any, Any]]] = {
        "key-value": [
            (ks.KeyQuery("a"), "A"),
            (ks.TimestampedKeyQuery("a"), stamped),
            (ks.TimestampedKeyWithHeadersQuery("a"), record("a", "A", 5)),
            (ks.RangeQuery(), [("a", "A"), ("b", "B")]),
            (ks.TimestampedRangeQuery(high="a"), [("a", stamped)]),
            (ks.TimestampedRangeWithHeadersQuery("b"), [record("b", "B", 6)]),
        ],
        "window": [
            (ks.WindowKeyQuery("a"), [(0, stamped)]),
            (ks.WindowRangeQuery(0, 0), [(within("a", 10), stamped), (within("b", 10), ks.ValueAndTimestamp("B", 6))]),
            (ks.TimestampedWindowKeyWithHeadersQuery("a"), [record(within("a", 10), "A", 5)]),
            (
                ks.TimestampedWindowRangeWithHeadersQuery(),
                [record(within("a", 10), "A", 5), record(within("b", 10), "B", 6)],
            ),
        ],
        "session": [
            (ks.SessionKeyQuery("a"), [(within("a", 9), "A")]),
            (ks.SessionKeyWithHeadersQuery("a"), [record(within("a", 9), "A", 9)]),
        ],
    }
    for kind, queries in asked.items():
        with world.streams(materialization(kind), application_id=kind) as streams:
            streams.start()
            until(lambda streams=streams: streams.state is State.RUNNING)  # type: ignore[misc]
            for query, answer in queries:
                bound = {TopicPartition("in", 0): 1}
                until(lambda s=streams, q=query, b=bound: s.query("kept", q, bound=b).partitions[0].failure is None)  # type: ignore[misc]
                assert streams.query("kept", query, bound=bound).only_value == answer, query


def within(key: str, end: int) -> ks.Windowed[str]:
    return ks.Windowed(key, ks.Window(0, end))


def record(key: Any, value: str, timestamp: int) -> ks.Record[Any, str]:
    return ks.Record(key=key, value=value, timestamp=timestamp, headers=TRACE)


@EACH
def test_the_server_answers_with_headers(world: World, kind: str) -> None:
    written(world)
    builder = ks.StreamsBuilder()
    builder.add_state_store(STORES[kind]().as_queryable())
    builder.stream("in", key=str, value=str).process(PROCESSORS[kind], stores=["kept"], key=str, value=str)
    with served(world, builder.build(), commit_interval_ms=20) as (client, streams):
        until(lambda: streams.state is State.RUNNING)
        until(lambda: client.rows("/v1/stores/kept/rows") != [])
        row = client.rows("/v1/stores/kept/rows?limit=1")[0]
        assert (row["key"], row["value"]) == ("a", "A")
        assert row["headers"] == [["trace", "7"], ["trace", ""], ["none", None]]
        assert row.get("timestamp") == (None if kind == "session" else 5)
        assert client.rows("/v1/stores/kept/keys/a") == [row]


@EACH
def test_as_a_table_they_have_a_column_of_headers(kind: str) -> None:
    state = open_task_state([STORES[kind]()])
    keep(state.stores["kept"], kind)
    table = as_table([rows_of_store(state.stores["kept"])], None)
    assert table.column("value").to_pylist() == ["A"]
    headers = [{"name": name, "value": value} for name, value in TRACE]
    assert table.column("headers").to_pylist() == [headers]
    assert pa.types.is_list(table.schema.field("headers").type)


def keep(store: Any, kind: str, headers: Any = TRACE) -> None:
    puts = {
        "key-value": lambda: store.put("a", ks.ValueTimestampHeaders("A", 5, headers)),
        "window": lambda: store.put("a", ks.ValueTimestampHeaders("A", 5, headers), 0),
        "session": lambda: store.put(within("a", 9), ks.AggregationWithHeaders("A", headers)),
    }
    puts[kind]()


def test_the_driver_shows_a_store_with_less_beside_its_values() -> None:
    with driver("key-value") as it:
        assert it.get_key_value_store("kept").get("a") == "A"
        assert it.get_timestamped_key_value_store("kept").get("a") == ks.ValueAndTimestamp("A", 5)
        row = ks.ValueTimestampHeaders("A", 5, TRACE)
        assert it.get_timestamped_key_value_store_with_headers("kept").get("a") == row
        assert list(it.get_key_value_store("kept").all()) == [("a", "A")]
    with driver("window") as it:
        assert it.get_window_store("kept").get("a", 0) == "A"
        assert it.get_timestamped_window_store("kept").get("a", 0) == ks.ValueAndTimestamp("A", 5)
        assert it.get_timestamped_window_store_with_headers("kept").get("a", 0) == row
    with driver("session") as it:
        assert it.get_session_store("kept").fetch_session("a", 0, 9) == "A"
        aggregation = ks.AggregationWithHeaders("A", TRACE)
        assert it.get_session_store_with_headers("kept").fetch_session("a", 0, 9) == aggregation
        with pytest.raises(StateError, match="is a session-with-headers store, not a timestamped-window-with-headers"):
            it.get_timestamped_window_store_with_headers("kept")


def driver(kind: str) -> TopologyTestDriver:
    made = TopologyTestDriver(materialization(kind))
    made.create_input_topic("in", key=str, value=str).pipe_input("a", "A", 5, TRACE)
    return made


@EACH
def test_a_mock_context_opens_them(kind: str) -> None:
    context = MockProcessorContext()
    store = context.add_state_store(STORES[kind]())
    keep(store, kind)
    processor = PROCESSORS[kind]()
    processor.init(context)
    processor.process(ks.Record(key="a", value="?", timestamp=9))
    assert [captured.record.headers for captured in context.forwarded()] == [TRACE]


@EACH
def test_a_list_of_headers_may_change_after_it_was_put(kind: str) -> None:
    state, headers = open_task_state([STORES[kind]()]), [*TRACE]
    keep(state.stores["kept"], kind, headers)
    headers.clear()
    assert [row.headers for _, row in state.stores["kept"].all()] == [TRACE]


@pytest.mark.parametrize("missing", [ks.ValueTimestampHeaders(None, 5, TRACE), None])  # type: ignore[type-var]
def test_a_value_that_is_none_deletes(missing: Any) -> None:
    store = open_task_state([STORES["key-value"]()]).stores["kept"]
    keep(store, "key-value")
    store.put("a", missing)
    assert store.get("a") is None
    assert list(store.all()) == []


PUTS = {
    "key-value": lambda store, row: store.put("a", row),
    "window": lambda store, row: store.put("a", row, 0),
    "session": lambda store, row: store.put(within("a", 9), row),
}
WANTED = {
    "key-value": "put ValueTimestampHeaders('A', timestamp, headers)",
    "window": "put ValueTimestampHeaders('A', timestamp, headers)",
    "session": "put AggregationWithHeaders('A', headers)",
}


@EACH
def test_a_processor_that_puts_a_bare_value_learns_what_to_put(kind: str) -> None:
    with pytest.raises(ProcessingError) as refused:
        puts(kind, "A")
    assert WANTED[kind] in str(refused.value)


@pytest.mark.parametrize("row", [7, ks.ValueAndTimestamp("A", 5), ks.AggregationWithHeaders("A", TRACE)])
def test_bare_values_are_refused_among_many_too(row: Any) -> None:
    store = open_task_state([STORES["key-value"]()]).stores["kept"]
    with pytest.raises(TypeError, match="put ValueTimestampHeaders"):
        store.put_all([("a", row)])


def test_a_time_may_be_a_datetime() -> None:
    row = ks.ValueTimestampHeaders("A", datetime(1970, 1, 2, tzinfo=UTC), TRACE)  # type: ignore[arg-type]
    assert puts("key-value", row) == [("a", ks.ValueTimestampHeaders("A", 86_400_000, TRACE))]


@pytest.mark.parametrize("headers", [[("trace", "7")], [("trace",)], [(7, b"7")]])
@EACH
def test_what_are_no_headers_is_refused_at_the_put(kind: str, headers: Any) -> None:
    row = ks.AggregationWithHeaders("A", headers)
    with pytest.raises(ProcessingError, match=r"is no header: give pairs of a name and bytes, as \('trace-id', b'7'\)"):
        puts(kind, row if kind == "session" else ks.ValueTimestampHeaders("A", 5, headers))


def puts(kind: str, row: Any) -> list[Any]:
    """Run a processor that puts so; what the store has then."""

    class Puts(Keep):
        def process(self, record: ks.Record[str, str]) -> None:
            PUTS[kind](self.kept, row)

    builder = ks.StreamsBuilder()
    builder.add_state_store(STORES[kind]())
    builder.stream("in", key=str, value=str).process(Puts, stores=["kept"])
    with TopologyTestDriver(builder.build()) as it:
        it.create_input_topic("in", key=str, value=str).pipe_input("a", "A", 5)
        return list(it.get_state_store("kept").all())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)

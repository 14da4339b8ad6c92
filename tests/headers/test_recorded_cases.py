"""Headers are those that Kafka Streams 4.4 gives: on the test driver and on the native engine, with and without cache.

`recorder/HeaderCases.java` records the cases; `topologies.py` has the same topologies here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.batch import Row as BytesRow
from kstreams.kernel.clock import ManualClock
from kstreams.state import open_task_state
from kstreams.testing import TopologyTestDriver
from tests.headers.recorded import CHANGELOGS, INPUT, RUNS, Recorded, Row, headers_of
from tests.headers.topologies import CASES
from tests.native.stepped import stepped
from tests.native.world import World
from tests.support.examples import few_of

CACHE = 1_000_000
FINAL = ("tumbling_final", "session_final")
"""Where Kafka Streams loses windows as time jumps: see docs/decisions/windows-emitted-before-the-put.md."""
BARE_SESSIONS = (Recorded("session", "headers", CACHE), Recorded("suppress_sessions", "headers", CACHE))
"""Where a record cache before sessions drops headers, in Kafka Streams with dsl.store.format=HEADERS alone."""
SESSIONS = "kept_headers_of_sessions"
"""The times of sessions in a changelog: there that of the record, here the end of the session."""
LAST_MS = {"kept_headers_of_windows": 201_000, SESSIONS: 202_000}
"""The latest time in the changelog."""
BY_A_THREAD = "global_table_join"
"""A thread of its own fills the global table of a native application: what is joined there is not of one moment."""
EQUAL = [run for run in RUNS if run.case not in FINAL and run not in BARE_SESSIONS]
ON_NATIVE = [run for run in EQUAL if run.format == "default" and run.case != BY_A_THREAD]


def built(case: str) -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    CASES[case](builder)
    return builder.build()


def topics_of(topology: ks.Topology) -> set[str]:
    described = str(topology.describe())
    return {topic for topic in ("a", "b") if f"topics: [{topic}]" in described}


def on_driver(run: Recorded) -> list[Row]:
    topology, config = built(run.case), {"statestore.cache.max.bytes": run.cache, "dsl.store.format": run.format}
    topics = topics_of(topology)
    with TopologyTestDriver(topology, config) as driver:
        out = driver.create_output_topic("out", key=str, value=str)
        for topic, key, value, time, header in INPUT:
            if topic in topics:
                driver.create_input_topic(topic, key=str, value=str).pipe_input(key, value, time, headers_of(header))
        return [row(record.key, record.value, record.timestamp, record.headers) for record in out.read_records()]


def on_native(run: Recorded, folder: Path) -> list[Row]:
    """Record by record, with a commit after each, as the test driver of Kafka Streams does."""
    world, topology = World(folder), built(run.case)
    for topic in ("a", "b", "out"):
        world.create(topic)
    with stepped(world, topology, ManualClock(), statestore_cache_max_bytes=run.cache) as application:
        for topic, key, value, time, header in INPUT:
            with world.log() as log, log.producer() as producer:
                raw = None if value is None else value.encode()
                producer.send(topic, key.encode(), raw, timestamp=time, headers=headers_of(header))
            application.work()
    return [row(text(raw.key), text(raw.value), raw.timestamp, raw.headers) for raw in written(world, "out")]


def changelog(world: World) -> list[Row]:
    kept = [raw for raw in written(world, "app-kept-changelog") if raw.value is not None]
    return [row((raw.key or b"").hex(), text(raw.value), raw.timestamp, raw.headers) for raw in kept]


def written(world: World, topic: str) -> list[BytesRow]:
    source = TopicPartition(topic, 0)
    found: list[BytesRow] = []
    with world.log() as log, log.consumer() as consumer:
        consumer.assign([source])
        end = consumer.end_offsets([source])[source]
        while consumer.position(source) < end:
            for batch in consumer.poll(0.1, 1_000):
                found += batch.rows()
    return found


def row(key: Any, value: Any, timestamp: int, headers: Any) -> Row:
    return [key, value, timestamp, [[name, text(raw)] for name, raw in headers]]


def text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode()


@pytest.mark.parametrize("run", EQUAL, ids=lambda run: "-".join(map(str, run)))
def test_headers_are_those_of_kafka_streams(run: Recorded) -> None:
    assert on_driver(run) == RUNS[run]


@pytest.mark.parametrize("run", few_of([(run,) for run in ON_NATIVE], 60), ids=lambda run: "-".join(map(str, run)))
def test_the_native_engine_gives_the_same(run: Recorded, tmp_path: Path) -> None:
    assert on_native(run, tmp_path) == RUNS[run]


@pytest.mark.parametrize("run", [run for run in CHANGELOGS if run.format == "default"], ids=lambda run: run.case)
def test_changelogs_have_the_headers_of_values_as_kafka_streams_writes_them(run: Recorded, tmp_path: Path) -> None:
    on_native(run, tmp_path)
    rows, times = changelog(World(tmp_path)), [2] if run.case == SESSIONS else []
    assert [without(times, row) for row in rows] == [without(times, row) for row in CHANGELOGS[run]]


@pytest.mark.parametrize("run", [run for run in CHANGELOGS if run.format == "default"], ids=lambda run: run.case)
def test_a_store_is_restored_from_a_changelog_that_kafka_streams_wrote(run: Recorded) -> None:
    [builder] = built(run.case).stores.values()
    state = open_task_state([builder])
    rows = [
        BytesRow(bytes.fromhex(key), value.encode(), time, tuple((name, each.encode()) for name, each in headers))
        for key, value, time, headers in CHANGELOGS[run]
    ]
    state.restore("kept", Batch.of_rows(TopicPartition("headers-kept-changelog", 0), rows))
    restored = [(value[0], value.headers) for _, value in state.stores["kept"].all()]
    last = {row.key: ((row.value or b"").decode(), row.headers) for row in rows}
    assert sorted(restored) == sorted(last[key] for key in last if is_alive(run.case, key))


def is_alive(case: str, key: bytes | None) -> bool:
    """Stores of windows and sessions keep the last 100 seconds."""
    ends = {"kept_headers_of_windows": -12, SESSIONS: -16}
    at = ends.get(case)
    return at is None or int.from_bytes((key or b"")[at : at + 8], "big") > LAST_MS[case] - 100_000


def without(places: list[int], row: Row) -> Row:
    return [part for place, part in enumerate(row) if place not in places]


@pytest.mark.parametrize("run", [run for run in RUNS if run.case in FINAL], ids=lambda run: "-".join(map(str, run)))
def test_final_results_have_the_headers_of_the_record_that_closes_them(run: Recorded, tmp_path: Path) -> None:
    found = on_driver(run)
    assert [row for row in found if row in RUNS[run]] == RUNS[run]
    assert on_native(run, tmp_path) == found


@pytest.mark.parametrize("run", BARE_SESSIONS, ids=lambda run: "-".join(map(str, run)))
def test_sessions_keep_their_headers_in_a_record_cache_whatever_the_format_of_stores(run: Recorded) -> None:
    assert on_driver(run) == RUNS[run._replace(format="default")]

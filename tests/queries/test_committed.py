"""Queries of what is committed: the asking thread reads, whatever the tasks do meanwhile."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.state.queries import KeyQuery
from kstreams.state.read_only_store import ReadOnlySessionStore, ReadOnlyVersionedStore, ReadOnlyWindowStore
from tests.native.world import WAIT_S, World, until

TEXTS: dict[str, Any] = {"key": str, "value": str}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, **{"commit.interval.ms": 20})
    world.create("in", 4)
    world.write("in", [(f"k{i % 10}", str(i), 1_000 * i) for i in range(100)])
    return world


@contextmanager
def running(streams: KafkaStreams) -> Iterator[KafkaStreams]:
    with streams:
        streams.start()
        until(lambda: streams.state is State.RUNNING)
        yield streams


def counts(store: str = "rocksdb") -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).group_by_key().count(ks.Materialized("counts", store=store))
    return builder.build()


def test_a_task_that_hangs_keeps_nobody_from_reading_what_is_committed(world: World) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(value: str) -> str:
        if value == "hang":
            hangs.set()
            goes_on.wait(WAIT_S)
        return value

    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).map_values(hang, value=str).to_table(materialized="last")
    with running(world.streams(builder.build())) as streams:
        last = streams.store("last", isolation="read_committed")
        until(lambda: len(last.all()) == 10)
        world.write("in", [("k1", "hang", 1)])
        assert hangs.wait(WAIT_S)
        assert last.get("k9").value == "99"
        assert sorted(key for key, _ in last.all()) == [f"k{i}" for i in range(10)]
        goes_on.set()


def test_what_is_not_committed_is_not_seen_and_what_is_processed_is_seen_otherwise(world: World) -> None:
    never = {"commit_interval_ms": 86_400_000, "first_commit_interval_ms": 86_400_000}
    with running(world.streams(counts(), **never)) as streams:
        now, committed = streams.store("counts"), streams.store("counts", isolation="read_committed")
        until(lambda: sum(row.value for _, row in now.all()) == 100)
        assert committed.all() == []


def test_the_isolation_of_queries_that_name_none_is_configured(world: World) -> None:
    never = {"commit_interval_ms": 86_400_000, "first_commit_interval_ms": 86_400_000}
    settings = {**never, "default_interactive_query_isolation_level": "READ_COMMITTED"}
    with running(world.streams(counts(), **settings)) as streams:
        processed = streams.store("counts", isolation="read_uncommitted")
        until(lambda: sum(row.value for _, row in processed.all()) == 100)
        assert streams.store("counts").all() == []
        assert all(answer.value is None for answer in streams.query("counts", KeyQuery("k1")).partitions.values())
        with pytest.raises(StateError, match="isolation is one of read_uncommitted, read_committed, not 'current'"):
            streams.store("counts", isolation="current")  # type: ignore[call-overload]


def test_every_kind_of_store_answers(world: World) -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", **TEXTS).group_by_key()
    grouped.windowed_by(ks.TimeWindows(size=10_000)).count(ks.Materialized("windows", retention=10**9))
    grouped.windowed_by(ks.SessionWindows(gap=20_000)).count(ks.Materialized("sessions", retention=10**9))
    builder.table("table", **TEXTS, materialized=ks.Materialized("versions", history_retention=10**9))
    world.create("table")
    world.write("table", [("a", "x", 10), ("a", "y", 20)])
    with running(world.streams(builder.build())) as streams:
        windows = streams.store("windows", ReadOnlyWindowStore, isolation="read_committed")
        until(lambda: len(windows.all()) == 100)
        assert [start for start, _ in windows.fetch("k3", 20_000, 40_000)] == [20_000, 30_000, 40_000]
        assert windows.get("k3", 20_000).value == 1
        sessions = streams.store("sessions", ReadOnlySessionStore, isolation="read_committed")
        assert [value for _, value in sessions.fetch("k3")] == [10]
        versioned = streams.store("versions", ReadOnlyVersionedStore, isolation="read_committed")
        until(lambda: versioned.get("a") is not None)
        found = [versioned.get("a", as_of=time) for time in (9, 10, 19, 20)]
        assert [row and row.value for row in found] == [None, "x", "x", "y"]


def test_a_global_table_is_read_without_its_thread(world: World) -> None:
    builder = ks.StreamsBuilder()
    builder.global_table("in", **TEXTS, materialized="names")
    builder.stream("other", **TEXTS).to("out", **TEXTS)
    world.create("other")
    with running(world.streams(builder.build())) as streams:
        for names in (streams.store("names"), streams.store("names", isolation="read_committed")):
            assert names.get("k7").value == "97"
            assert len(names.all()) == 10
        world.write("in", [("k7", "new", 10**6)])
        until(lambda: streams.store("names").get("k7").value == "new")


def test_a_store_in_memory_says_that_its_task_has_to_answer(world: World) -> None:
    with running(world.streams(counts("memory"))) as streams:
        with pytest.raises(StateError, match=r'keeps no bytes.*isolation="read_uncommitted"'):
            streams.store("counts", isolation="read_committed")
        assert streams.store("counts").get("none") is None


def test_garbage_is_not_looked_for_within_a_scan_and_is_afterwards(world: World) -> None:
    world.write("in", [(f"more{i}", "x", 1) for i in range(40_000)])
    with running(world.streams(counts())) as streams:
        committed = streams.store("counts", isolation="read_committed", partition=0)
        until(lambda: len(streams.store("counts", isolation="read_committed").all()) == 40_010)
        collections = list[str]()
        gc.callbacks.append(lambda phase, info: collections.append(phase))
        try:
            assert len(committed.all()) > 5_000
            assert len(collections) <= 2  # a start and an end; Python itself would look once for 700 objects
        finally:
            gc.callbacks.pop()
        assert gc.isenabled()


def test_one_partition_is_read_alone(world: World) -> None:
    with running(world.streams(counts())) as streams:
        until(lambda: len(streams.store("counts", isolation="read_committed").all()) == 10)
        for isolation in ("read_committed", "read_uncommitted"):
            parts = [streams.store("counts", partition=n, isolation=isolation).all() for n in range(4)]  # type: ignore[call-overload]
            assert sum(map(len, parts)) == 10
            whole = streams.store("counts", isolation=isolation)  # type: ignore[call-overload]
            assert [row for part in parts for row in part] == whole.all()
        with pytest.raises(StateError, match="not the partition 4"):
            streams.store("counts", partition=4)


def total(streams: KafkaStreams, *, stale: bool) -> int:
    """How many records are counted; 0 while tasks move."""
    try:
        return sum(row.value for _, row in streams.store("counts", isolation="read_committed", stale=stale).all())
    except StateError:
        return 0


def test_a_standby_answers_for_what_runs_elsewhere_when_stale_answers_will_do(world: World) -> None:
    settings, topology = {"num_standby_replicas": 1}, counts()
    with world.streams(topology, **settings) as one, world.streams(topology, **settings) as other:
        both = one, other
        for streams in both:
            streams.start()
        until(lambda: [total(streams, stale=True) for streams in both] == [100, 100])
        until(lambda: all(0 < total(streams, stale=False) < 100 for streams in both))
        until(lambda: sum(total(streams, stale=False) for streams in both) == 100)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_no_answer_goes_back_or_is_of_no_prefix_while_tasks_move(tmp_path: Path, isolation: Any) -> None:
    """Each key counts 1, 2, 3, ...: per key answers may only grow, and may not exceed what was written."""
    world, keys, rounds = World(tmp_path, **{"commit.interval.ms": 10}), [f"k{i}" for i in range(8)], 60
    world.create("in", 4)
    wrong, answers, stopping, written = list[Any](), list[int](), threading.Event(), [0]

    def ask(streams: KafkaStreams) -> None:
        last = dict.fromkeys(keys, 0)
        while not stopping.is_set():
            try:
                store = streams.store("counts", isolation=isolation)
                found = {key: row.value for key, row in store.all()}
                found |= {key: row.value for key in keys[::3] if (row := store.get(key)) is not None}
            except StateError:
                continue
            most = written[0]
            seen = {key: (last[key], found.get(key, 0), most) for key in keys}
            wrong.extend(each for each in seen.items() if list(each[1]) != sorted(each[1]))
            last |= found
            answers.append(1)

    with running(world.streams(counts(), num_stream_threads=2)) as streams:
        askers = [threading.Thread(target=ask, args=(streams,)) for _ in range(3)]
        for asker in askers:
            asker.start()
        for number in range(rounds):
            written[0] = 20 * (number + 1)
            world.write("in", [(key, "", 1_000 * number) for key in keys] * 20)
            if number % 20 == 10:
                streams.add_stream_thread()
            if number % 20 == 19:
                streams.remove_stream_thread()
        until(lambda: streams.state is State.RUNNING)
        until(lambda: [row.value for _, row in streams.store("counts").all()] == [20 * rounds] * len(keys))
        stopping.set()
        for asker in askers:
            asker.join()
    assert wrong == []
    assert len(answers) > 20


def test_a_key_is_looked_up_without_a_wait_where_all_is_here(world: World) -> None:
    def found(streams: KafkaStreams, key: str) -> Any:
        return streams.committed_nowait("counts", key, lambda store: store.get(key))

    streams = world.streams(counts())
    assert found(streams, "k3") is None
    with running(streams):
        until(lambda: sum(value.value for _, value in streams.store("counts", isolation="read_committed").all()) == 100)
        ((number, answer),) = found(streams, "k3").items()
        typed = streams.query("counts", KeyQuery("k3"), partitions=[number], isolation="read_committed")
        assert (answer.value.value, answer.position) == (typed.only_value, typed.position)
        nobody = found(streams, "nobody")
        assert {each: answer.value for each, answer in nobody.items()} == dict.fromkeys(range(4))
    assert found(streams, "k3") is None
    with running(world.streams(counts("memory"), application_id="memory")) as in_memory:
        assert found(in_memory, "k3") is None


def test_a_time_is_a_datetime_or_milliseconds_and_may_be_left_out(world: World) -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", **TEXTS).group_by_key()
    grouped.windowed_by(ks.TimeWindows(size=10_000)).count(ks.Materialized("windows", retention=10**9))
    grouped.windowed_by(ks.SessionWindows(gap=2_000)).count(ks.Materialized("sessions", retention=10**9))
    builder.table("table", **TEXTS, materialized=ks.Materialized("versions", history_retention=10**9))
    world.create("table")
    world.write("table", [("a", "x", 10_000), ("a", "y", 20_000)])

    def at(second: int) -> datetime:
        return datetime(1970, 1, 1, 1, *divmod(second, 60), 999, tzinfo=timezone(timedelta(hours=1)))

    with running(world.streams(builder.build())) as streams:
        windows = streams.store("windows", ks.ReadOnlyWindowStore, isolation="read_committed")
        until(lambda: len(windows.all()) == 100)
        assert windows.get("k3", at(20)) == windows.get("k3", 20_000) is not None
        assert windows.fetch("k3") == windows.fetch("k3", 0, 90_000)
        assert windows.fetch("k3", to_time=at(10)) == windows.fetch("k3", 0, 10_000) == windows.fetch("k3")[:2]
        assert windows.fetch_all() == windows.all()
        assert windows.fetch_range("k3", "k3", at(80)) == windows.fetch_range("k3", "k3", 80_000, 10**9)
        query = ks.WindowKeyQuery("k3", at(20), at(40))
        until(lambda: streams.query("windows", query).only_value == windows.fetch("k3", 20_000, 40_000))
        sessions = streams.store("sessions", ks.ReadOnlySessionStore, isolation="read_committed")
        assert sessions.fetch_session("k3", at(3), at(3)) == 1
        assert sessions.find_sessions("k3", latest_start=at(13)) == sessions.fetch("k3")[:2]
        assert sorted(sessions.find_sessions_range()) == sorted(sessions.fetch_range()) == sorted(sessions.all())
        versions = streams.store("versions", ks.ReadOnlyVersionedStore, isolation="read_committed")
        until(lambda: (row := versions.get("a")) is not None and row.value == "y")
        assert (
            versions.get("a", as_of=at(10))
            == versions.get("a", as_of=10_000)
            == versions.history("a", to_time=at(10))[0]
        )
        assert versions.to_arrow(as_of=at(10))["value"].to_pylist() == ["x"]
        assert streams.sql("select value from versions", as_of=at(10))["value"].to_pylist() == ["x"]
        assert streams.query("versions", ks.VersionedKeyQuery("a", at(10))).only_value.value == "x"
        assert len(streams.query("versions", ks.MultiVersionedKeyQuery("a", at(20))).only_value) == 1


@pytest.mark.parametrize(
    ("time", "error", "said"),
    [
        (datetime(2026, 1, 1), ValueError, "no time zone"),
        (1.5, TypeError, "not a time"),
        (True, TypeError, "not a time"),
    ],
)
def test_what_is_no_time_is_refused(time: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ks.ReadOnlyVersionedStore("versions", []).get("a", as_of=time)

"""Typed queries: answers with positions, bounds for reading one's writes, and reasons where there is no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import CorruptStateError, StateError, StoreNotAvailableError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.state import queries as q
from tests.native.world import World, until

TEXTS: dict[str, Any] = {"key": str, "value": str}
BOTH = pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, **{"commit.interval.ms": 20})
    world.create("in", 2)
    world.create("prices")
    for partition in range(2):
        world.write("in", [(f"{partition}-{i % 3}", str(i), 1_000 * i) for i in range(9)], partition)
    world.write("prices", [("a", "x", 10), ("a", "y", 20), ("a", None, 30), ("a", "z", 40)])
    return world


def topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", **TEXTS).group_by_key()
    grouped.count(materialized="counts")
    grouped.windowed_by(ks.TimeWindows(size=3_000)).count(ks.Materialized("windows", retention=10**9))
    grouped.windowed_by(ks.SessionWindows(gap=5_000)).count(ks.Materialized("sessions", retention=10**9))
    builder.table("prices", **TEXTS, materialized=ks.Materialized("prices", history_retention=10**9))
    return builder.build()


@contextmanager
def running(streams: KafkaStreams) -> Iterator[KafkaStreams]:
    with streams:
        streams.start()
        until(lambda: streams.state is State.RUNNING)
        yield streams


def end(partition: int, offset: int = 8) -> dict[TopicPartition, int]:
    return {TopicPartition("in", partition): offset}


@BOTH
def test_every_query_answers_for_the_kinds_it_is_for(world: World, isolation: Any) -> None:
    with running(world.streams(topology())) as streams:

        def ask(store: str, query: Any, partition: int = 0) -> Any:
            bound = {**end(partition), TopicPartition("prices", 0): 3} if store == "prices" else end(partition)
            read = dict[str, Any](partitions=[partition], bound=bound, isolation=isolation)
            until(lambda: streams.query(store, query, **read).partitions[partition].failure is None)
            return streams.query(store, query, **read).only_value

        assert ask("counts", q.KeyQuery("0-1")) == 3
        assert ask("counts", q.TimestampedKeyQuery("0-1")) == ks.ValueAndTimestamp(3, 7_000)
        assert ask("counts", q.RangeQuery("1-1"), 1) == [("1-1", 3), ("1-2", 3)]
        assert ask("counts", q.RangeQuery(high="1-1", descending=True), 1) == [("1-1", 3), ("1-0", 3)]
        assert ask("counts", q.TimestampedRangeQuery("1-2"), 1) == [("1-2", ks.ValueAndTimestamp(3, 8_000))]
        starts = [start for start, _ in ask("windows", q.WindowKeyQuery("0-1", 3_000, 6_000))]
        assert starts == [3_000, 6_000]
        assert len(ask("windows", q.WindowRangeQuery(0, 3_000))) == 6
        assert [value for _, value in ask("sessions", q.SessionKeyQuery("0-1"))] == [3]


@BOTH
def test_rows_are_asked_for_as_records(world: World, isolation: Any) -> None:
    """Without headers, as Kafka Streams 4.4.0 answers for every store that the DSL makes."""
    with running(world.streams(topology())) as streams:

        def ask(store: str, query: Any) -> Any:
            read = dict[str, Any](partitions=[0], bound=end(0), isolation=isolation)
            until(lambda: streams.query(store, query, **read).partitions[0].failure is None)
            return streams.query(store, query, **read).only_value

        row = ks.Record(key="0-1", value=3, timestamp=7_000)
        assert ask("counts", q.TimestampedKeyWithHeadersQuery("0-1")) == row
        assert ask("counts", q.TimestampedKeyWithHeadersQuery("nobody")) is None
        assert ask("counts", q.TimestampedRangeWithHeadersQuery("0-1", "0-1")) == [row]
        of_key = ask("windows", q.TimestampedWindowKeyWithHeadersQuery("0-1", 3_000, 6_000))
        assert [(each.key.key, each.key.window.start_ms, each.headers) for each in of_key] == [
            ("0-1", 3_000, ()),
            ("0-1", 6_000, ()),
        ]
        in_range = ask("windows", q.TimestampedWindowRangeWithHeadersQuery(0, 3_000))
        plain = ask("windows", q.WindowRangeQuery(0, 3_000))
        assert [(each.key, each.value, each.timestamp) for each in in_range] == [(key, *row) for key, row in plain]
        [session] = ask("sessions", q.SessionKeyWithHeadersQuery("0-1"))
        assert (session.value, session.timestamp) == (3, session.key.window.end_ms)


@BOTH
def test_versions_are_asked_for_at_a_time_and_between_two(world: World, isolation: Any) -> None:
    bound = {TopicPartition("prices", 0): 3}
    with running(world.streams(topology())) as streams:

        def versions(*times: int | None, descending: bool = False) -> Any:
            query = q.MultiVersionedKeyQuery("a", *times, descending=descending)
            found = streams.query("prices", query, bound=bound, isolation=isolation).only_value
            return [(row.value, row.timestamp, row.valid_to) for row in found]

        latest = q.VersionedKeyQuery("a")
        until(lambda: streams.query("prices", latest, bound=bound, isolation=isolation).partitions[0].failure is None)
        assert streams.query("prices", q.VersionedKeyQuery("a", 25), isolation=isolation).only_value.value == "y"
        assert streams.query("prices", q.VersionedKeyQuery("a", 35), isolation=isolation).only_value is None
        assert versions() == [("x", 10, 20), ("y", 20, 30), ("z", 40, None)]
        assert versions(20, 39) == [("y", 20, 30)]
        assert versions(descending=True) == versions()[::-1]
        assert versions(None, 9) == versions(30, 39) == []


@BOTH
def test_a_writer_reads_its_own_writes_by_a_bound(world: World, isolation: Any) -> None:
    with running(world.streams(topology())) as streams:
        query = q.KeyQuery("0-1")
        for number in range(1, 6):
            world.write("in", [("0-1", "", 10_000)], 0)
            bound = end(0, 8 + number)
            found = streams.query("counts", query, partitions=[0], bound=bound, isolation=isolation).partitions[0]
            while found.failure is q.FailureReason.NOT_UP_TO_BOUND:
                found = streams.query("counts", query, partitions=[0], bound=bound, isolation=isolation).partitions[0]
            assert (found.failure, found.value, found.position) == (None, 3 + number, bound)


def test_each_partition_says_why_it_has_no_answer(world: World) -> None:
    with running(world.streams(topology())) as streams:

        def failures(*asked: Any, **how: Any) -> list[str | None]:
            results = streams.query(*asked, **how).partitions.values()
            return [each.failure and each.failure.name for each in results]

        assert failures("counts", q.KeyQuery("a"), partitions=[0, 2]) == [None, "DOES_NOT_EXIST"]
        assert failures("counts", q.WindowRangeQuery(0, 1)) == ["UNKNOWN_QUERY_TYPE"] * 2
        assert failures("counts", q.KeyQuery("a"), bound=end(1, 10**9)) == [None, "NOT_UP_TO_BOUND"]
        assert failures("counts", q.KeyQuery(7), isolation="read_committed") == ["STORE_EXCEPTION"] * 2
        with pytest.raises(StateError, match="there is no store 'nothing'"):
            streams.query("nothing", q.KeyQuery("a"))
        with pytest.raises(StateError, match="1: NOT_UP_TO_BOUND"):
            _ = streams.query("counts", q.KeyQuery("a"), bound=end(1, 10**9)).only_value
    with pytest.raises(StateError, match="it is NOT_RUNNING"):
        streams.query("counts", q.KeyQuery("a"))


def test_a_standby_answers_unless_active_ones_are_asked_for(world: World) -> None:
    settings, both = {"num_standby_replicas": 1}, topology()
    with world.streams(both, **settings) as one, world.streams(both, **settings) as other:
        for streams in (one, other):
            streams.start()

        def seen(streams: KafkaStreams, **how: Any) -> list[Any]:
            try:
                found = streams.query("counts", q.KeyQuery("0-1"), partitions=[0], **how).partitions[0]
            except StateError:
                return []
            return [found.failure.name] if found.failure else [found.value]

        until(lambda: [seen(streams) for streams in (one, other)] == [[3], [3]])
        active = {"require_active": True}
        until(lambda: sorted(map(str, [*seen(one, **active), *seen(other, **active)])) == ["3", "NOT_ACTIVE"])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreNotAvailableError("it moves"), q.FailureReason.NOT_PRESENT),
        (CorruptStateError("a damaged block"), q.FailureReason.STORE_EXCEPTION),
        (StateError("no such file"), q.FailureReason.STORE_EXCEPTION),
    ],
)
def test_only_what_will_be_there_again_is_not_present(error: Exception, reason: q.FailureReason) -> None:
    def damaged() -> Any:
        raise error

    found = q.result_of(damaged, 0, {})
    assert (found.failure, str(error) in found.message) == (reason, True)


ASKED: dict[str, Callable[[KafkaStreams], Any]] = {
    "store": lambda streams: streams.store("counts").get("a"),
    "stale": lambda streams: streams.store("counts", stale=True).get("a"),
    "query": lambda streams: streams.query("counts", q.KeyQuery("a")),
    "sql": lambda streams: streams.sql("select * from counts"),
    "where a key is": lambda streams: streams.query_metadata_for_key("counts", "a"),
    "where a store is": lambda streams: streams.streams_metadata_for_store("counts"),
    "clients": lambda streams: streams.metadata_for_all_streams_clients(),
    "lags": lambda streams: streams.all_local_store_partition_lags(),
}


@pytest.mark.parametrize("asked", ASKED)
def test_before_the_start_and_after_the_end_everything_says_to_ask_again(world: World, asked: str) -> None:
    streams = world.streams(topology())
    with pytest.raises(StoreNotAvailableError, match="CREATED"):
        ASKED[asked](streams)
    with running(streams):
        ASKED[asked](streams)
    with pytest.raises(StoreNotAvailableError, match="NOT_RUNNING"):
        ASKED[asked](streams)


@pytest.mark.parametrize(
    "ask",
    [
        lambda streams: streams.store("nothing"),
        lambda streams: streams.query("nothing", q.KeyQuery("a")),
        lambda streams: streams.query_metadata_for_key("nothing", "a"),
        lambda streams: streams.streams_metadata_for_store("nothing"),
        lambda streams: streams.committed_nowait("nothing", "a", len),
    ],
)
def test_a_name_that_no_store_has_is_no_reason_to_ask_again(world: World, ask: Callable[[KafkaStreams], Any]) -> None:
    with running(world.streams(topology())) as streams, pytest.raises(StateError, match="no store 'nothing'") as found:
        ask(streams)
    assert not isinstance(found.value, StoreNotAvailableError)

"""Whole applications on a real Kafka: the same results as on the embedded log, across restarts and lost state."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import ConfigError, TopologyError
from kstreams.kernel.batch import TopicPartition
from tests.connectors.systems import Database, Numbered, orders, orders_in
from tests.native.order.history import a_year, dropped, hourly_counts, skewed, world_of
from tests.native.order.history import counted as windowed
from tests.native.world import World, counted, lines, until, word_count
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_topics import delete_everything
from tests.support.tcp_proxy import Request

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
MINUTE_MS = 60_000


@pytest.fixture
def world(kafka: Any, tmp_path: Path) -> World:
    delete_everything(kafka.bootstrap_servers)
    return World(tmp_path, **{"bootstrap.servers": kafka.bootstrap_servers})


def later(rows: Any) -> Any:
    """The same rows without the time 0, which Kafka's client cannot write."""
    return [(key, value, time + 1) for key, value, time in rows]


def windowed_count() -> ks.Topology:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=timedelta(minutes=1), grace=timedelta(minutes=2))
    grouped = builder.stream("in", key=str, value=str).group_by(lambda _, value: value, key=str)
    counts = grouped.windowed_by(windows).count(materialized="windows")
    counts.to_stream().map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("out")
    return builder.build()


def events(count: int, start: int = 0) -> list[tuple[str, str, int]]:
    """Events of eleven kinds, hardly in order, some of them too late."""
    return [
        (str(i), f"kind {i % 11}", 1 + max(0, i * 700 - (i % 5) * 9_000 - (i % 97 == 96) * 6 * MINUTE_MS))
        for i in range(start, start + count)
    ]


def test_a_source_and_a_sink_are_connected_by_topics_in_kafka(world: World, tmp_path: Path) -> None:
    """A bounded run waits for the marks of transactions, which follow a commit."""
    for count in (1_000, 3_000, 9_000):
        builder = ks.StreamsBuilder()
        builder.stream(Numbered(count, ["a"]), name="orders").to(Database(tmp_path / "copy.db"), name="copy")
        world.run(builder, processing_guarantee="exactly_once_v2")
        assert orders_in(tmp_path / "copy.db") == orders(count)


@BOTH
def test_word_count_goes_on_after_a_restart(world: World, guarantee: str) -> None:
    world.create("lines", 3)
    world.create("counts", 2)
    world.write("lines", later(lines(500)))
    world.run(word_count(), once=True, processing_guarantee=guarantee)
    world.write("lines", later(lines(500, 500)))
    world.run(word_count(), once=True, processing_guarantee=guarantee)
    assert world.table("counts", value=int) == counted(1_000)


@BOTH
def test_windows_are_those_of_the_embedded_log(world: World, tmp_path: Path, guarantee: str) -> None:
    """Restarted once with its stores, and once without them: they come from the changelogs."""
    tables = []
    for home in (World(tmp_path / "embedded"), world):
        home.create("in", 3)
        home.create("out", 1)
        for number in range(3):
            home.write("in", events(400, 400 * number))
            home.run(windowed_count(), once=True, processing_guarantee=guarantee, num_stream_threads=2)
            if number == 1:
                shutil.rmtree(home.settings["state.dir"])
        tables.append(home.table("out", value=int))
    assert tables[0] == tables[1]
    assert len(tables[0]) > 50


def test_a_running_application_answers_new_records(world: World) -> None:
    world.create("lines", 1)
    world.create("counts", 1)
    with world.streams(word_count(), commit_interval_ms=100) as streams:
        streams.start()
        world.write("lines", later(lines(20)))
        while world.table("counts", value=int) != counted(20):
            assert not streams.wait(0.2)
        world.write("lines", later(lines(20, 20)))
        while world.table("counts", value=int) != counted(40):
            assert not streams.wait(0.2)


def test_internal_topics_are_made_as_they_must_be(world: World) -> None:
    world.create("lines", 3)
    world.create("counts", 1)
    world.run(word_count(), once=True, replication_factor=1)
    with world.log() as log, log.admin() as admin:
        found = {name: topic for name, topic in admin.topics().items() if name.startswith("app-")}
        assert {topic.partitions for topic in found.values()} == {3}
        policies = {name: topic.config["cleanup.policy"] for name, topic in found.items()}
    assert policies["app-counts-changelog"] == "compact"
    assert {policy for name, policy in policies.items() if name.endswith("-repartition")} == {"delete"}


def test_more_copies_than_brokers_are_refused(world: World) -> None:
    world.create("lines", 1)
    world.create("counts", 1)
    with pytest.raises(ConfigError, match=r"replication\.factor"):
        world.run(word_count(), once=True, replication_factor=3)


def test_a_changelog_that_is_not_compacted_is_refused(world: World) -> None:
    world.create("lines", 1)
    world.create("counts", 1)
    world.create("app-counts-changelog", 1, cleanup_policy="delete")
    with pytest.raises(TopologyError, match=r"cleanup\.policy"):
        world.run(word_count(), once=True)


def test_what_seventy_windowed_counts_keep_with_a_commit_fits_into_kafka(world: World) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    for number in range(70):
        windows = ks.TimeWindows(size=timedelta(minutes=1 + number), grace=timedelta(minutes=number))
        stream.group_by_key().windowed_by(windows).count(materialized=f"windows-of-{number}-minutes")
    topology = builder.build()
    world.create("in", 1)
    world.write("in", [("k", "v", 100 * MINUTE_MS), ("k", "v", 100 * MINUTE_MS + 1)])
    world.run(topology, once=True)
    world.write("in", [("k", "late", 1)])
    dropped = world.run(topology, once=True).progress().dropped
    assert sum(dropped.values()) > 0
    with world.log() as log, log.admin() as admin:
        places = [TopicPartition(topic, 0) for topic in admin.topics()]
        sizes = [len(at.metadata) for at in admin.committed("app", places).values() if at.metadata]
    assert len(sizes) > 1
    assert max(sizes) <= 4_096


def test_a_broker_that_stands_still_doubles_nothing_and_loses_nothing(tmp_path: Path) -> None:
    """The broker stands still again and again: the application goes on, on a thread of its own or a new one."""
    with KafkaCluster() as cluster:
        world = World(tmp_path, **{"bootstrap.servers": cluster.bootstrap_servers})
        world.create("lines", 2)
        world.create("counts", 1)
        settings = {"processing_guarantee": "exactly_once_v2", "commit_interval_ms": 50, "producer.max.block.ms": 500}
        with world.streams(word_count(), **settings) as streams:
            streams.start()
            for number in range(3):
                world.write("lines", later(lines(100, 100 * number)))
                cluster.pause()
                assert not streams.wait(8)
                cluster.go_on()
            while world.table("counts", value=int) != counted(300):
                assert not streams.wait(0.5)
        repeated = [(row.key, row.value) for row in world.rows("counts", value=int)]
        assert len(repeated) == len(set(repeated))


@pytest.mark.parametrize("asked", [Request.ADD_OFFSETS_TO_TXN, Request.TXN_OFFSET_COMMIT, Request.END_TXN])
def test_an_application_goes_on_from_its_last_commit_when_answers_to_a_commit_are_lost(
    tmp_path: Path, asked: Request, caplog: pytest.LogCaptureFixture
) -> None:
    with KafkaCluster(proxied=True) as cluster:
        world = World(tmp_path, **{"bootstrap.servers": cluster.bootstrap_servers})
        world.create("lines", 2)
        world.create("counts", 1)
        settings = {"processing_guarantee": "exactly_once_v2", "commit_interval_ms": 50, "producer.max.block.ms": 500}
        with world.streams(word_count(), **settings) as streams:
            streams.start()
            for number in range(3):
                lost = cluster.proxy.lose(asked)
                world.write("lines", later(lines(100, 100 * number)))
                while not lost.done.is_set():
                    assert not streams.wait(0.1)
            while world.table("counts", value=int) != counted(300):
                assert not streams.wait(0.5)
        repeated = [(row.key, row.value) for row in world.rows("counts", value=int)]
        assert len(repeated) == len(set(repeated))
        assert caplog.text.count("resumes from the last commit") >= 3


@BOTH
def test_history_in_skewed_partitions_gives_what_one_partition_gives(
    world: World, tmp_path: Path, guarantee: str
) -> None:
    rows = a_year(5_000)
    alone = world_of(tmp_path / "one partition", [rows])
    alone.run(hourly_counts())
    home = {"bootstrap.servers": world.settings["bootstrap.servers"], "processing.guarantee": guarantee}
    many = world_of(tmp_path / "many", skewed(rows), **home)
    topology = hourly_counts()
    with many.streams(topology) as one, many.streams(topology, num_stream_threads=2) as two:
        one.start()
        two.start()
        until(lambda: windowed(many) + dropped([one, two]) >= len(rows))
    assert many.table("counts", value=int) == alone.table("counts", value=int)

"""An application of Kafka Streams (Java) and the same one of ours, in one cluster: what they write is the same, byte by
byte, and each goes on from what the other has left.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.kernel.batch import Row, TopicPartition
from kstreams.log import Log, home_at
from tests.log.contract.reading import commits_are_awaited, drain
from tests.native.world import World
from tests.support.java_programs import compiled
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# Kafka Streams lets brokers delete its windows by their age: these are young.
START_MS = int(time.time()) // 60 * 60_000 - 600_000
INPUTS = {"keys": 1, "lines": 1, "people": 1}
RESULTS = {"keys": 7, "counts": 3, "windows": 3, "sessions": 3, "cities": 1}
SETTINGS = {"statestore.cache.max.bytes": 0, "repartition.purge.interval.ms": 3_600_000, "commit.interval.ms": 100}


def topology(name: str) -> ks.Topology:
    """The topology of `Peer.java`."""
    builder = ks.StreamsBuilder()
    builder.stream("keys", key=str, value=str).to(f"keys-{name}")
    words = (
        builder.stream("lines", key=str, value=str)
        .flat_map_values(lambda line: line.split(" "), value=str)
        .select_key(lambda _, word: word, key=str)
        .repartition(name="words", partitions=3)
    )
    grouped = words.group_by_key()
    grouped.count(materialized="counts").to_stream().to(f"counts-{name}")
    minutes = ks.TimeWindows(size=timedelta(minutes=1), grace=timedelta(minutes=5))
    grouped.windowed_by(minutes).count(materialized="windows").to_stream().to(f"windows-{name}")
    sessions = ks.SessionWindows(gap=timedelta(seconds=5), grace=timedelta(minutes=5))
    grouped.windowed_by(sessions).count(materialized="sessions").to_stream().to(f"sessions-{name}")
    people = builder.table("people", key=str, value=str, materialized="people")
    by_city = people.group_by(lambda person, city: (city, person), key=str, value=str, name="cities")
    by_city.count(materialized="cities").to_stream().to(f"cities-{name}")
    return builder.build()


class Peers:
    """The two applications and what they read and write."""

    def __init__(self, servers: str, log: Log, folder: Path) -> None:
        self._servers, self._log, self._folder = servers, log, folder

    def write(self, topic: str, rows: list[tuple[str | None, str | None, int]]) -> None:
        with self._log.producer() as producer:
            for key, value, at in rows:
                producer.send(topic, key and key.encode(), value and value.encode(), timestamp=at, partition=0)

    def run_java(self, name: str) -> None:
        """Run Kafka Streams until it has read everything."""
        with self._java(name):
            while not self._has_read_all(name):
                time.sleep(0.2)
        while self._log.admin().describe_group(name).members:
            time.sleep(0.2)

    def run_ours(self, name: str) -> None:
        settings = {"bootstrap.servers": self._servers, "application.id": name, **SETTINGS}
        World(self._folder, **settings).run(topology(name))

    def rows(self, topic: str) -> list[list[Row]]:
        """What each partition holds."""
        count = self._log.admin().describe_topic(topic).partitions
        found = []
        for number in range(count):
            with self._log.consumer() as consumer:
                consumer.assign([TopicPartition(topic, number)])
                found.append(drain(consumer))
        return found

    def internal_topics(self, name: str) -> list[str]:
        return [topic.removeprefix(f"{name}-") for topic in self._log.admin().topics() if topic.startswith(f"{name}-")]

    @contextmanager
    def _java(self, name: str) -> Iterator[None]:
        java = [
            "java",
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            compiled(Path(__file__).parent / "peer"),
        ]
        output = self._folder / f"{name}.txt"
        with output.open("a") as file:
            process = subprocess.Popen(
                [*java, "Peer", self._servers, name, str(self._folder / f"state-{name}")],
                stdin=subprocess.PIPE, stdout=file, stderr=file,
            )  # fmt: skip
        try:
            yield
            process.communicate(timeout=60)
            assert process.returncode == 0, output.read_text()[-3000:]
        finally:
            process.kill()
            process.wait()

    def _has_read_all(self, name: str) -> bool:
        admin = self._log.admin()
        internal = [f"{name}-{topic}" for topic in self.internal_topics(name) if topic.endswith("repartition")]
        topics = [*INPUTS, *internal]
        read = [TopicPartition(topic, n) for topic in topics for n in range(admin.describe_topic(topic).partitions)]
        committed, ends = admin.committed(name, read), admin.end_offsets(read)
        return len(internal) == 2 and all(
            ends[source] == (committed[source].offset if source in committed else 0) for source in read
        )


@pytest.fixture
def peers(kafka: Any, tmp_path: Path) -> Iterator[Peers]:
    delete_everything(kafka.bootstrap_servers)
    with home_at(f"kafka:{kafka.bootstrap_servers}").open() as log:
        for topic, count in INPUTS.items():
            log.admin().create_topic(topic, count)
        for name in ("java", "ours", "undisturbed"):
            for topic, count in RESULTS.items():
                log.admin().create_topic(f"{topic}-{name}", count)
        with commits_are_awaited(log):
            yield Peers(kafka.bootstrap_servers, log, tmp_path)


def lines(start: int, count: int) -> list[tuple[str | None, str | None, int]]:
    """Lines at times that mostly grow: some words come late, one in a while."""
    return [
        (None, f"all w{i % 7} ü{i % 13}", START_MS + i * 700 - (i % 5) * 9_000)
        for i in range(start, start + count)
    ]  # fmt: skip


def people(start: int, count: int) -> list[tuple[str | None, str | None, int]]:
    """People who move from city to city, and go."""
    return [
        (f"p{i % 19}", None if i % 11 == 10 else f"city {i % 5}", START_MS + i * 100)
        for i in range(start, start + count)
    ]  # fmt: skip


def sequences(parts: list[list[Row]]) -> list[Any]:
    """Everything, in its order."""
    return [[(row.key, row.value, row.timestamp, row.headers) for row in part] for part in parts]


def tables(parts: list[list[Row]]) -> list[Any]:
    """What a restore takes from it: the last of each key, with its time."""
    last = [{row.key: (row.value, row.timestamp, row.headers) for row in part} for part in parts]
    return [{key: row for key, row in part.items() if row[0] is not None} for part in last]


def test_both_write_the_same_bytes_to_the_same_places(peers: Peers) -> None:
    """Changelogs are compared as tables: ours get what changed since the last commit, theirs every change."""
    peers.write("keys", [(f"key {i} é", str(i), START_MS + i) for i in range(10_000)])
    peers.write("lines", lines(0, 300))
    peers.write("people", people(0, 200))
    peers.run_java("java")
    peers.run_ours("ours")
    assert sorted(peers.internal_topics("java")) == sorted(peers.internal_topics("ours"))
    pairs = [(f"java-{topic}", f"ours-{topic}") for topic in peers.internal_topics("java")]
    pairs += [(f"{topic}-java", f"{topic}-ours") for topic in RESULTS]
    for theirs, ours in pairs:
        compared = tables if theirs.endswith("changelog") else sequences
        wrote = compared(peers.rows(theirs))
        assert compared(peers.rows(ours)) == wrote, ours
        assert any(wrote), ours


@pytest.mark.parametrize("order", [("run_java", "run_ours"), ("run_ours", "run_java")])
def test_each_goes_on_from_the_state_that_the_other_has_left(peers: Peers, order: tuple[str, str]) -> None:
    """The second has no files of its own: its stores come from the changelogs of the first."""
    halves = [("lines", lines, 300), ("people", people, 200)]
    for turn, run in enumerate(order):
        for topic, rows, count in halves:
            peers.write(topic, rows(turn * count, count))
        getattr(peers, run)("java")
    peers.run_java("undisturbed")
    for topic in ("counts", "windows", "sessions", "cities"):
        assert tables(peers.rows(f"{topic}-java")) == tables(peers.rows(f"{topic}-undisturbed")), topic

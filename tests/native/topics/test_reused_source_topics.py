"""`reuse.ktable.source.topics` at work: a table without a changelog comes back from its topic after every loss."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import WAIT_S, World, tasks_of, until

TEXTS = {"key": str, "value": str}
REUSE = {"topology.optimization": "reuse.ktable.source.topics"}
BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


def lookup(**source: Any) -> ks.Topology:
    """Greetings joined with the table of `names`."""
    builder = ks.StreamsBuilder()
    names = builder.table("names", **TEXTS, materialized="names", **source)
    builder.stream("greetings", **TEXTS).join(names, lambda a, b: f"{a} {b}").to("out", **TEXTS)
    return builder.build(REUSE)


@pytest.fixture
def topics(world: World) -> World:
    world.create("names", 2)
    world.create("greetings", 2)
    world.write("names", [("a", "Anna", 1), ("b", "Bert", 1), ("c", "Cleo", 1), ("c", None, 2)])
    return world


def greet(world: World, topology: ks.Topology | None = None, **settings: Any) -> dict[str, str]:
    """Say hello to everybody; who answers."""
    world.write("greetings", [(key, "hi", 10) for key in "abcd"])
    world.run(topology or lookup(), once=True, **settings)
    return world.table("out")


@BOTH
def test_no_changelog_is_made_and_lost_state_comes_back(topics: World, guarantee: str) -> None:
    assert greet(topics, processing_guarantee=guarantee) == {"a": "hi Anna", "b": "hi Bert"}
    assert not [topic for topic in topics.topics() if topic.endswith("-changelog")]
    shutil.rmtree(topics.folder / "state")
    topics.write("names", [("b", "Berta", 3)])
    assert greet(topics, processing_guarantee=guarantee) == {"a": "hi Anna", "b": "hi Berta"}


def test_a_restore_reads_only_what_the_disk_lacks(topics: World) -> None:
    greet(topics)
    told: list[Any] = []
    streams = KafkaStreams(lookup(), topics.settings, on_restore=told.append)
    streams.start(once=True)
    assert streams.wait(WAIT_S)
    assert told == []


def test_what_is_not_processed_yet_is_not_restored_but_processed(topics: World) -> None:
    greet(topics)
    shutil.rmtree(topics.folder / "state")
    topics.write("names", [("d", "Dora", 5)])
    told: list[Any] = []
    streams = KafkaStreams(lookup(), topics.settings, on_restore=told.append)
    streams.start(once=True)
    assert streams.wait(WAIT_S)
    assert sum(p.total for p in {(p.task, p.store): p for p in told}.values()) == 4
    assert greet(topics)["d"] == "hi Dora"


def test_what_the_source_left_out_is_left_out_again(topics: World) -> None:
    settings = {"deserialization_exception_handler": "continue"}
    with topics.log() as log, log.producer() as producer:
        producer.send("names", None, b"nobody", timestamp=3)
        producer.send("names", b"a", b"\xff\xff", timestamp=4)
    before = greet(topics, **settings)
    shutil.rmtree(topics.folder / "state")
    assert greet(topics, **settings) == before == {"a": "hi Anna", "b": "hi Bert"}


def test_event_times_are_extracted_again(topics: World) -> None:
    def versions(extract: Callable[[Any, int], int]) -> ks.Topology:
        kept = ks.Materialized("names", history_retention=1_000)
        builder = ks.StreamsBuilder()
        names = builder.table("names", **TEXTS, materialized=kept, timestamp_extractor=extract)
        builder.stream("greetings", **TEXTS).join(names, lambda a, b: f"{a} {b}").to("out", **TEXTS)
        return builder.build(REUSE)

    def backwards(record: Any, partition_time: int) -> int:
        return {"Anna": 9, "Andy": 5}.get(record.value, record.timestamp)

    topics.write("names", [("a", "Andy", 1)])
    before = greet(topics, versions(backwards))
    shutil.rmtree(topics.folder / "state")
    assert greet(topics, versions(backwards)) == before
    assert before["a"] == "hi Anna"


RUN_AND_DIE = """
import os, signal, sys, time
from tests.native.topics.test_reused_source_topics import lookup
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams

settings = {"application.id": "app", "log.dir": sys.argv[1] + "/log", "state.dir": sys.argv[1] + "/state"}
settings |= {"commit.interval.ms": 0, "processing.guarantee": sys.argv[2]}
streams = KafkaStreams(lookup(), settings)
streams.start()
while streams.progress().records_in < int(sys.argv[3]):
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


@BOTH
@pytest.mark.slow
def test_a_killed_process_leaves_a_table_that_is_brought_up_to_date(topics: World, guarantee: str) -> None:
    for turn in range(4):
        count = 4 if turn == 0 else 2
        died = subprocess.run(
            [sys.executable, "-c", RUN_AND_DIE, str(topics.folder), guarantee, str(count)],
            cwd=Path(__file__).parents[3],
            timeout=WAIT_S,
            check=False,
            env=os.environ,
        )
        assert died.returncode == -signal.SIGKILL
        topics.write("names", [("a", f"Anna {turn}", 5 + turn), ("b", f"Bert {turn}", 5 + turn)])
    assert greet(topics, processing_guarantee=guarantee) == {"a": "hi Anna 3", "b": "hi Bert 3"}


@BOTH
def test_a_standby_follows_the_topic_as_far_as_it_is_processed(topics: World, guarantee: str) -> None:
    settings = {"num_standby_replicas": 1, "processing_guarantee": guarantee, "commit_interval_ms": 20, "poll_ms": 10}
    topology = lookup()
    with topics.streams(topology, **settings) as one, topics.streams(topology, **settings) as two:
        one.start()
        two.start()
        until(lambda: all(len(tasks_of(streams)) == 1 for streams in (one, two)))
        topics.write("greetings", [(key, "hi", 10) for key in "abcd"])
        until(lambda: topics.table("out") == {"a": "hi Anna", "b": "hi Bert"})
        topics.write("names", [("b", "Berta", 11), ("d", "Dora", 11)])
        topics.write("greetings", [(key, "hi", 12) for key in "abcd"])
        until(lambda: topics.table("out") == {"a": "hi Anna", "b": "hi Berta", "d": "hi Dora"})
        sleep(1.5)  # the standbys read on
        before = two.progress().restored
        assert one.close(WAIT_S)
        until(lambda: len(tasks_of(two)) == 2 and two.state is State.RUNNING)
        assert two.progress().restored == before
        names = two.store("names")
        assert {key: names.get(key).value for key in "abd"} == {"a": "Anna", "b": "Berta", "d": "Dora"}

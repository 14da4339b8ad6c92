"""Sources: where they begin without a committed offset, and which topics a pattern reads."""

from __future__ import annotations

import re
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import ConfigError, LogError, ProcessingError, TopologyError, UnknownTopicError
from kstreams.kernel.clock import ManualClock
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import WAIT_S, World, tasks_of, until

TEXTS = {"key": str, "value": str}
HOUR = 3_600_000


def copied(topics: Any, **source: Any) -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream(topics, **TEXTS, **source).to("out")
    return builder.build()


def values(world: World) -> list[str]:
    return sorted(row.value for row in world.rows("out"))


# where to begin


@pytest.fixture
def old(world: World) -> World:
    """A topic with records of the last three hours; it is three o'clock."""
    world.create("in")
    world.write("in", [("k", f"hour {hour}", hour * HOUR) for hour in range(4)])
    return world


def run_at_three(world: World, **source: Any) -> None:
    streams = KafkaStreams(copied("in", **source), world.settings, clock=ManualClock(3 * HOUR))
    streams.start(once=True)
    assert streams.wait(WAIT_S)


@pytest.mark.parametrize(
    ("reset", "count"),
    [
        (None, 4),
        ("earliest", 4),
        ("latest", 0),
        (timedelta(0), 1),
        (timedelta(hours=1), 2),
        (timedelta(minutes=90), 2),
        (timedelta(days=1), 4),
    ],
)
def test_a_source_begins_where_its_reset_says(old: World, reset: Any, count: int) -> None:
    run_at_three(old, offset_reset=reset)
    old.create("out") if "out" not in old.topics() else None
    assert values(old) == [f"hour {hour}" for hour in range(4 - count, 4)]


def test_none_needs_a_committed_offset(old: World) -> None:
    with pytest.raises(LogError, match=r'Nothing is committed for in-0.*offset_reset of its source is "none"'):
        run_at_three(old, offset_reset="none")
    run_at_three(old)
    old.write("in", [("k", "later", 4 * HOUR)])
    run_at_three(old, offset_reset="none")
    assert "later" in values(old)


def test_a_committed_offset_goes_before_every_reset(old: World) -> None:
    run_at_three(old)
    old.write("in", [("k", "later", 4 * HOUR)])
    run_at_three(old, offset_reset="latest")
    assert len(values(old)) == 5


@pytest.mark.parametrize("prefix", ["", "consumer.", "main.consumer."])
@pytest.mark.parametrize(("setting", "count"), [("latest", 0), ("by_duration:PT1H", 2)])
def test_the_configuration_speaks_for_sources_that_say_nothing(
    old: World, setting: str, count: int, prefix: str
) -> None:
    old.settings[f"{prefix}auto.offset.reset"] = setting
    run_at_three(old)
    assert len(old.rows("out") if "out" in old.topics() else []) == count
    assert old.topics().count("in") == 1


def test_what_is_said_for_the_main_consumer_goes_first(old: World) -> None:
    old.settings |= {"auto.offset.reset": "none", "consumer.auto.offset.reset": "none"}
    old.settings["main.consumer.auto.offset.reset"] = "latest"
    run_at_three(old)
    assert "out" not in old.topics() or not old.rows("out")


def test_a_reset_that_there_is_not_is_refused(old: World) -> None:
    old.settings["auto.offset.reset"] = "newest"
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset cannot be 'newest': allowed are earliest"):
        run_at_three(old)


# patterns


def test_a_pattern_reads_all_topics_that_match(world: World) -> None:
    for topic in ("in-a", "in-b", "other"):
        world.create(topic)
        world.write(topic, [("k", topic, 0)])
    world.run(copied(re.compile("in-.*")))
    assert values(world) == ["in-a", "in-b"]


def test_a_pattern_does_not_read_the_internal_topics_of_the_application(world: World) -> None:
    world.create("app-words")
    world.write("app-words", [("k", "word", 0)])
    builder = ks.StreamsBuilder()
    words = builder.stream(re.compile("app-.*"), **TEXTS)
    words.repartition(name="again").group_by_key().count("counts").to_stream().to("counts")
    for _ in range(2):
        world.run(builder.build(), once=True)
    assert world.table("counts", value=int) == {"k": 1}


def test_a_pattern_that_matches_nothing_is_an_error_of_a_run_that_ends(world: World) -> None:
    said = (
        r"No topic matches the pattern 'in-\.\*', which KSTREAM-SOURCE-0000000000 .* reads: create one with `kstreams"
    )
    with pytest.raises(UnknownTopicError, match=said):
        world.run(copied(re.compile("in-.*")), once=True)


def test_a_run_without_end_waits_for_a_topic_and_says_so_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.settings["metadata.max.age.ms"] = 20
    with world.streams(copied(re.compile("in-.*"))) as streams:
        streams.start()
        world.create("in-a")
        world.write("in-a", [("k", "v", 1)])
        until(lambda: streams.progress().records_in == 1)
    assert sum("No topic matches the pattern 'in-.*'" in line for line in caplog.messages) == 1


@pytest.mark.parametrize("begins_with", [[], ["in-a"]])
def test_a_running_application_picks_up_new_topics(world: World, begins_with: list[str]) -> None:
    builder = ks.StreamsBuilder()
    words = builder.stream(re.compile("in-.*"), **TEXTS)
    words.to("out")
    words.group_by(lambda key, word: word, key=str).count("counts").to_stream().to("counts")
    for topic in begins_with:
        world.create(topic)
        world.write(topic, [("k", topic, 0)])
    states: list[State] = []
    world.settings |= {"metadata.max.age.ms": 20, "commit.interval.ms": 20}  # counts leave the record cache at commits
    with KafkaStreams(builder.build(), world.settings) as streams:
        streams.set_state_listener(lambda new, before: states.append(new))
        streams.start()
        until(lambda: streams.state is State.RUNNING)
        until(lambda: streams.progress().records_out["counts"] >= len(begins_with))
        world.create("in-b")
        world.write("in-b", [("k", "in-b", 1)])
        until(lambda: streams.progress().records_out["counts"] >= len(begins_with) + 1)
        until(lambda: streams.state is State.RUNNING)
    assert states.count(State.REBALANCING) >= 2
    assert values(world) == [*begins_with, "in-b"]
    assert world.table("counts", value=int) == dict.fromkeys([*begins_with, "in-b"], 1)


def two_patterns() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream(re.compile("in-.*"), **TEXTS).to("out")
    builder.stream(re.compile(".*-b"), **TEXTS).to("other")
    return builder.build()


def test_a_topic_that_two_patterns_match_is_refused_at_the_start(world: World) -> None:
    world.create("in-b")
    with pytest.raises(TopologyError, match=r"Topic 'in-b' is read by .*'in-\.\*' and by .*'\.\*-b'"):
        world.run(two_patterns())


def test_a_topic_that_two_patterns_match_ends_the_running_application_with_an_error(world: World) -> None:
    world.settings["metadata.max.age.ms"] = 20
    world.create("in-a")
    world.create("x-b")
    with world.streams(two_patterns()) as streams:
        streams.start()
        until(lambda: streams.state is State.RUNNING)
        world.create("in-b")
        with pytest.raises(TopologyError, match="Topic 'in-b' is read by"):
            streams.wait(WAIT_S)


def test_a_pattern_and_a_global_table_both_read_a_topic(world: World) -> None:
    world.create("in-a")
    world.write("in-a", [("k", "v", 0)])
    builder = ks.StreamsBuilder()
    table = builder.global_table("in-a", **TEXTS)
    stream = builder.stream(re.compile("in-.*"), **TEXTS)
    joined = stream.join(table, lambda one, other: one + other, key_selector=lambda key, value: key, value=str)
    joined.to("out")
    world.run(builder.build())
    assert values(world) == ["vv"]


# partitions that are added while the application runs


def add_partitions(world: World, topic: str, total: int) -> None:
    with world.log() as log, log.admin() as admin:
        admin.add_partitions(topic, total)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_running_application_reads_partitions_that_are_added(world: World, processes: int) -> None:
    world.settings |= {"metadata.max.age.ms": 20, "poll.ms": 10}
    world.create("in", 2)
    world.create("out", 1)
    with ExitStack() as running:
        topology = copied("in")
        streams = [running.enter_context(world.streams(topology)) for _ in range(processes)]
        for each in streams:
            each.start()
        until(lambda: sum(len(tasks_of(each)) for each in streams) == 2)
        add_partitions(world, "in", 4)
        world.write("in", [("k", "added", 1)], partition=3)
        until(lambda: values(world) == ["added"])
        until(lambda: sum(len(tasks_of(each)) for each in streams) == 4)


def test_partitions_that_stores_have_no_place_for_end_the_application_with_an_error(world: World) -> None:
    world.settings["metadata.max.age.ms"] = 20
    world.create("in", 2)
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).group_by_key().count("counts").to_stream().to("out")
    with world.streams(builder.build()) as streams:
        streams.start()
        until(lambda: streams.state is State.RUNNING)
        add_partitions(world, "in", 3)
        with pytest.raises(TopologyError, match="app-counts-changelog has 2 partitions, but there are 3 tasks"):
            streams.wait(WAIT_S)


# event time


def test_a_negative_time_ends_the_run_unless_the_source_says_otherwise(world: World) -> None:
    world.create("in")
    world.write("in", [("k", "good", 5), ("k", "bad", -3)])
    with pytest.raises(ProcessingError, match=r"in-0@1: .*its time is negative.*LogAndSkipOnInvalidTimestamp"):
        world.run(copied("in"))
    world.run(copied("in", timestamp_extractor=ks.LogAndSkipOnInvalidTimestamp))
    assert values(world) == ["good"]


def test_the_wall_clock_of_the_engine_tells_the_time(world: World) -> None:
    world.create("in")
    world.write("in", [("k", "v", 5)])
    builder = copied("in", timestamp_extractor=ks.WallclockTimestampExtractor())
    streams = KafkaStreams(builder, world.settings, clock=ManualClock(77))
    streams.start(until_end=True)
    assert streams.wait(WAIT_S)
    assert [row.timestamp for row in world.rows("out")] == [77]

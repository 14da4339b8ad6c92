"""An application that is started again in one process, as by a cell of a notebook that is run again."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.native.world import World, until


def greeting(word: str) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    names = builder.stream("names", key=str, value=str)
    names.map_values(lambda name: f"{word} {name}", value=str).to("greetings")
    return builder


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, **{"commit.interval.ms": 20})
    world.create("names")
    world.create("greetings")
    return world


def greetings(world: World) -> list[Any]:
    return [row.value for row in world.rows("greetings")]


def test_the_second_start_replaces_the_first_and_says_so(world: World, caplog: pytest.LogCaptureFixture) -> None:
    first = world.streams(greeting("hello"))
    first.start()
    world.write("names", [("a", "ann", 1)])
    until(lambda: greetings(world) == ["hello ann"])
    with caplog.at_level(logging.WARNING), world.streams(greeting("bye")) as second:
        second.start()
        assert first.state.value == "NOT_RUNNING"
        assert first.error is None
        world.write("names", [("a", "ben", 2)])
        until(lambda: greetings(world) == ["hello ann", "bye ben"])
    assert "the application 'app' ran in this process already, by another topology: that run was closed" in caplog.text


def test_one_that_nobody_refers_to_is_replaced_too(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def cell(word: str) -> ks.KafkaStreams:
        streams = world.streams(greeting(word))
        streams.start()
        return streams

    streams = cell("hello")
    until(lambda: streams.state.value == "RUNNING")
    del streams
    gc.collect()
    streams = cell("bye")
    world.write("names", [("a", "ben", 1)])
    until(lambda: greetings(world) == ["bye ben"])
    assert streams.close(60)
    assert caplog.text.count("takes its place") == 1


def test_a_bounded_run_replaces_one_too(world: World) -> None:
    world.streams(greeting("hello")).start()
    world.write("names", [("a", "ann", 1)])
    until(lambda: greetings(world) == ["hello ann"])
    world.write("names", [("a", "ben", 2)])
    world.run(greeting("bye"))
    first, second = greetings(world)
    assert first == "hello ann"
    assert second in ("hello ben", "bye ben")  # the first one may be faster


def test_the_same_topology_shares_its_tasks(world: World, caplog: pytest.LogCaptureFixture) -> None:
    builder = greeting("hello")
    with world.streams(builder) as first, world.streams(builder) as second:
        first.start()
        second.start()
        until(lambda: first.state.value == second.state.value == "RUNNING")
    assert "takes its place" not in caplog.text


def test_another_application_or_another_state_folder_is_left_alone(world: World) -> None:
    with world.streams(greeting("hello")) as first, world.streams(greeting("bye"), application_id="other") as second:
        first.start()
        second.start()
        assert first.state.value != "NOT_RUNNING"


def test_one_that_was_closed_before_says_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for word in ("hello", "bye"):
        with world.streams(greeting(word)) as streams:
            streams.start()
    assert "takes its place" not in caplog.text

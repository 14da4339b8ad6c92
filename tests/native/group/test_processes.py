"""Several processes share the tasks of an application. Here they are several `KafkaStreams` in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import WAIT_S, World, counted, lines, tasks_of, until, word_count

SETTINGS = {"commit.interval.ms": 20, "statestore.cache.max.bytes": 0}
BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, **SETTINGS)
    world.create("lines", 4)
    world.create("counts", 1)
    return world


@pytest.fixture
def start(world: World) -> Iterator[Callable[..., KafkaStreams]]:
    """Starts a further process; what still runs at the end is closed."""
    started: list[KafkaStreams] = []

    def one_more(**settings: object) -> KafkaStreams:
        started.append(world.streams(word_count(), **settings))
        started[-1].start()
        return started[-1]

    yield one_more
    for streams in started:
        streams.close(WAIT_S)


def tasks_with_state(streams: KafkaStreams) -> int:
    return sum(task.startswith("1_") for task in tasks_of(streams))


@BOTH
def test_two_processes_share_the_tasks(world: World, start: Callable[..., KafkaStreams], guarantee: str) -> None:
    one = start(processing_guarantee=guarantee)
    world.write("lines", lines(50))
    until(lambda: len(tasks_of(one)) == 8)
    two = start(processing_guarantee=guarantee)
    until(lambda: tasks_with_state(one) == tasks_with_state(two) == 2)
    assert not tasks_of(one) & tasks_of(two)
    world.write("lines", lines(50, 50))
    until(lambda: world.table("counts", value=int) == counted(100))
    assert (one.state, two.state) == (State.RUNNING, State.RUNNING)
    rows = [(row.key, row.value) for row in world.rows("counts", value=int)]
    assert len(rows) == len(set(rows))


@BOTH
def test_a_process_that_is_closed_hands_its_tasks_over(
    world: World, start: Callable[..., KafkaStreams], guarantee: str
) -> None:
    one = start(processing_guarantee=guarantee)
    two = start(processing_guarantee=guarantee)
    world.write("lines", lines(60))
    until(lambda: tasks_with_state(one) == tasks_with_state(two) == 2)
    assert one.close(WAIT_S)
    world.write("lines", lines(60, 60))
    until(lambda: world.table("counts", value=int) == counted(120))
    assert len(tasks_of(two)) == 8


def test_a_standby_has_the_state_of_tasks_before_it_gets_them(world: World, start: Callable[..., KafkaStreams]) -> None:
    one = start(num_standby_replicas=1)
    world.write("lines", lines(80))
    until(lambda: world.table("counts", value=int) == counted(80))
    two = start(num_standby_replicas=1)
    until(lambda: tasks_with_state(one) == tasks_with_state(two) == 2)
    world.write("lines", lines(80, 80))
    until(lambda: world.table("counts", value=int) == counted(160))
    sleep(0.5)  # the standbys read on
    before = two.progress().restored
    assert one.close(WAIT_S)
    until(lambda: len(tasks_of(two)) == 8 and two.state is State.RUNNING)
    assert two.progress().restored == before
    store = two.store("counts")
    assert {key: store.get(key).value for key in counted(160)} == counted(160)


def test_threads_of_two_processes(world: World, start: Callable[..., KafkaStreams]) -> None:
    one, two = start(num_stream_threads=2), start(num_stream_threads=2)
    until(lambda: tasks_with_state(one) == tasks_with_state(two) == 2)
    world.write("lines", lines(100))
    until(lambda: world.table("counts", value=int) == counted(100))


def test_a_process_that_ends_with_an_error_leaves_its_tasks_to_others(world: World) -> None:
    world.create("in", 2)
    failing = {"one"}

    def copying(name: str) -> ks.Topology:
        def value(text: str) -> str:
            if name in failing and text == "x":
                raise ValueError("only here")
            return text

        builder = ks.StreamsBuilder()
        builder.stream("in", key=str, value=str).map_values(value, value=str).to("out")
        return builder.build()

    world.create("out")
    elsewhere = world.folder / "state of the other process"
    with world.streams(copying("one")) as one, world.streams(copying("two"), state_dir=elsewhere) as two:
        one.start()
        until(lambda: len(tasks_of(one)) == 2)
        two.start()
        until(lambda: len(tasks_of(one)) == len(tasks_of(two)) == 1)
        for partition in (0, 1):
            world.write("in", [("k", "x", 1)], partition)
        until(lambda: len(world.rows("out")) == 2)
        assert one.state is State.ERROR

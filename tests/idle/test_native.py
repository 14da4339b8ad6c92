"""Idle input on the native engine: what is buffered or still to be fetched is not idle, and restarts forget nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import kstreams as ks
from kstreams.kernel.clock import ManualClock
from tests.native.stepped import stepped
from tests.native.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.create("in")
    world.create("out")
    return world


def counts(idle: int | None = 30) -> ks.Topology:
    builder = ks.StreamsBuilder()
    windowed = builder.stream("in", key=str, value=str, idle=idle).group_by_key()
    counted = windowed.windowed_by(ks.TimeWindows(size=100, grace=0)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
    counted.count().to_stream().select_key(lambda key, _: key.key, key=str).to("out")
    return builder.build()


def out(world: World) -> list[tuple[str, int]]:
    return [(row.key, row.value) for row in world.rows("out", value=int)]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_windows_close_without_another_record(world: World, guarantee: str) -> None:
    world.write("in", [("a", "x", 60)])
    with stepped(world, counts(), ManualClock(), processing_guarantee=guarantee) as application:
        application.work()
        application.wait(39)
        assert out(world) == []
        application.wait(1)
        assert out(world) == [("a", 1)]


def test_what_was_closed_stays_closed_over_a_restart_and_idle_time_counts_anew(world: World) -> None:
    clock = ManualClock()
    world.write("in", [("a", "x", 60)])
    with stepped(world, counts(), clock) as application:
        application.work()
        application.wait(40)
    clock.advance(1_000)
    world.write("in", [("a", "late", 61), ("a", "y", 160)])
    with stepped(world, counts(), clock) as application:
        application.work()
        application.wait(39)
        assert out(world) == [("a", 1)]
        application.wait(1)
        assert out(world) == [("a", 1), ("a", 1)]


def test_in_a_bounded_run_only_records_and_their_end_close_windows(world: World) -> None:
    world.write("in", [("a", "x", 60), ("a", "y", 61)])
    world.run(counts(idle=0))
    assert out(world) == [("a", 2)]


def test_time_stands_while_an_input_of_the_task_has_records(world: World) -> None:
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str, idle=10) for topic in ("in", "right"))
    joined = left.left_join(right, lambda a, b: f"{a}+{b}", windows=ks.JoinWindows(before=5, after=5, grace=0))
    joined.to("out", value=str)
    world.create("right")
    world.write("in", [("a", "x", 60)])
    with stepped(world, builder.build(), ManualClock()) as application:
        application.work()
        for _ in range(5):
            application.clock.advance(9)
            world.write("right", [("b", "y", 60)])
            application.work()
        assert world.rows("out") == []
        application.wait(10)
        assert [row.value for row in world.rows("out")] == ["x+None"]

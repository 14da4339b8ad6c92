"""`--once` and `--until-end`: everything that is there and all that follows from it, no more and no less."""

from __future__ import annotations

import pytest

import kstreams as ks
from tests.native.world import World, counted, lines, word_count

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
THREADS = pytest.mark.parametrize("threads", [1, 3])


def windowed_count() -> ks.Topology:
    """Final counts of windows of 10 ms, written once a window is closed."""
    builder = ks.StreamsBuilder()
    windows = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0))
    final = windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count(materialized="windows")
    final.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out", key=str, value=int)
    return builder.build()


@BOTH
@THREADS
def test_all_that_follows_goes_through_repartition_topics_too(world: World, guarantee: str, threads: int) -> None:
    world.create("lines", 3)
    world.write("lines", lines(500))
    streams = world.run(word_count(), processing_guarantee=guarantee, num_stream_threads=threads)
    assert world.table("counts", value=int) == counted(500)
    assert streams.state.value == "NOT_RUNNING"
    assert streams.progress().lag == 0


@BOTH
@THREADS
def test_the_next_run_goes_on_where_the_last_one_stopped(world: World, guarantee: str, threads: int) -> None:
    world.create("lines", 2)
    for start in (0, 100, 250):
        count = {0: 100, 100: 150, 250: 50}[start]
        world.write("lines", lines(count, start))
        world.run(word_count(), once=True, processing_guarantee=guarantee, num_stream_threads=threads)
        assert world.table("counts", value=int) == counted(start + count)


@BOTH
def test_a_run_over_nothing_new_writes_nothing(world: World, guarantee: str) -> None:
    world.create("in", 2)
    world.write("in", [("a", "x", 1), ("b", "x", 5), ("a", "x", 12)])
    world.run(windowed_count(), processing_guarantee=guarantee)
    before = world.rows("out", value=int)
    streams = world.run(windowed_count(), processing_guarantee=guarantee)
    assert world.rows("out", value=int) == before
    assert streams.progress().records_in == 0


def test_once_leaves_open_what_stream_time_has_not_closed(world: World) -> None:
    world.create("in")
    world.write("in", [("a", "x", 1), ("a", "x", 2), ("a", "x", 12)])
    world.run(windowed_count(), once=True)
    assert world.table("out", value=int) == {"a@0": 2}
    world.write("in", [("a", "x", 13)])
    world.run(windowed_count())
    assert world.table("out", value=int) == {"a@0": 2, "a@10": 2}


def test_until_end_closes_what_is_open(world: World) -> None:
    world.create("in", 2)
    world.write("in", [("a", "x", 1), ("b", "x", 2), ("a", "x", 12)])
    world.run(windowed_count())
    assert world.table("out", value=int) == {"a@0": 1, "b@0": 1, "a@10": 1}


def test_records_that_come_while_it_runs_are_left_for_the_next_run(world: World) -> None:
    world.create("in")
    world.write("in", [("a", "1", 1), ("b", "2", 2)])
    builder = ks.StreamsBuilder()

    def more(key: str, value: str) -> None:
        world.write("in", [(key, value + "!", 9)])

    builder.stream("in", key=str, value=str).peek(more).to("out", key=str, value=str)
    world.run(builder.build(), once=True)
    assert [row.value for row in world.rows("out")] == ["1", "2"]
    assert [row.value for row in world.rows("in")] == ["1", "2", "1!", "2!"]


@THREADS
def test_a_task_takes_the_record_with_the_lowest_time_whatever_is_read_first(world: World, threads: int) -> None:
    world.create("left", 2)
    world.create("right", 2)
    for partition in (0, 1):
        world.write("left", [("k", f"l{t}", t) for t in range(0, 3000, 2)], partition)
        world.write("right", [("k", f"r{t}", t) for t in range(1, 3000, 2)], partition)
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    left.merge(right).to("out", key=str, value=str, partitioner=lambda topic, key, value, count: None)
    world.run(builder.build(), num_stream_threads=threads, max_poll_records=100, buffered_records_per_partition=10)
    times = [row.timestamp for row in world.rows("out")]
    assert sorted(times) == sorted([*range(3000)] * 2)
    by_task = world.partitions("out")
    assert len(by_task) == 2


def test_an_empty_input_is_a_bounded_input_too(world: World) -> None:
    world.create("in", 3)
    streams = world.run(windowed_count())
    assert world.rows("out") == []
    assert streams.state.value == "NOT_RUNNING"

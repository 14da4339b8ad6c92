"""In bounded runs repartition topics are in order of time, whatever threads, batches or restarts do."""

from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError
from tests.native.world import Output, World

PARTITIONS = 4


def behind_a_repartition(fails_at: int | None = None) -> ks.Topology:
    """Windows without grace, behind a repartition: a record out of order between tasks would be late."""
    builder = ks.StreamsBuilder()
    calls = count(1)

    def by_value(_: str, value: str) -> str:
        if next(calls) == fails_at:
            raise ValueError(value)
        return value

    events = builder.stream("in", key=str, value=str).select_key(by_value, key=str)
    windows = events.group_by_key(name="by-value").windowed_by(ks.TimeWindows(size=100, grace=0))
    counts = windows.count(materialized="counts")
    counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out", key=str, value=int)
    return builder.build()


def events(seed: int, rows: int) -> list[tuple[str, str, int]]:
    """A year, so to say: each partition holds all of it, in order of time."""
    rng = random.Random(seed)
    return [(f"k{rng.randrange(1000)}", f"v{rng.randrange(5)}", time * 3) for time in range(rows)]


def repartitioned(world: World) -> list[list[Output]]:
    return world.partitions("app-by-value-repartition")


@pytest.mark.parametrize("threads", [1, 3])
def test_nothing_is_late_that_is_in_order_in_its_own_partition(world: World, threads: int) -> None:
    rows = events(1, 6000)
    world.create("in", PARTITIONS)
    world.write("in", rows)
    streams = world.run(behind_a_repartition(), num_stream_threads=threads, max_poll_records=700)
    assert world.table("out", value=int) == Counter(f"{v}@{t // 100 * 100}" for _, v, t in rows)
    assert not streams.progress().dropped
    for partition in repartitioned(world):
        assert [row.timestamp for row in partition] == sorted(row.timestamp for row in partition)


def test_the_order_does_not_depend_on_threads_batches_or_restarts(tmp_path: Path) -> None:
    rows = events(2, 4000)
    found = []
    for number, (threads, most, fails_at) in enumerate([(1, 50_000, None), (3, 100, None), (2, 333, 2500)]):
        world = World(tmp_path / str(number), **{"processing.guarantee": "exactly_once_v2", "commit.interval.ms": 0})
        world.create("in", PARTITIONS)
        world.write("in", rows)
        settings = {"num_stream_threads": threads, "max_poll_records": most}
        if fails_at is not None:
            with pytest.raises(ProcessingError):
                world.run(behind_a_repartition(fails_at), **settings)
            assert 0 < sum(map(len, repartitioned(world))) < len(rows)
        world.run(behind_a_repartition(), **settings)
        found.append(repartitioned(world))
    assert found[0] == found[1] == found[2]


times = st.lists(st.integers(0, 40), max_size=60)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(times, min_size=2, max_size=3), st.integers(1, 3), st.integers(1, 40), st.integers(1, 20))
def test_unordered_times_empty_partitions_and_many_records_of_one_moment(
    tmp_path_factory: Any, partitions: list[list[int]], threads: int, most: int, room: int
) -> None:
    world = World(tmp_path_factory.mktemp("slices"))
    world.create("in", len(partitions))
    for number, part in enumerate(partitions):
        world.write("in", [("k", f"{number}.{i}", time) for i, time in enumerate(part)], number)
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str).repartition(key=str, value=str, name="by-value", partitions=1)
    stream.to("out", key=str, value=str)
    limits = {"max_poll_records": most, "buffered_records_per_partition": room}
    world.run(builder.build(), num_stream_threads=threads, **limits)
    [merged] = repartitioned(world)
    latest = [list(accumulate(part, max)) for part in partitions]
    keyed = sorted((time, number, i) for number, part in enumerate(latest) for i, time in enumerate(part))
    expected = [f"{number}.{i}" for _, number, i in keyed]
    assert [row.value for row in merged] == expected


def test_a_moment_with_more_records_than_a_first_run_takes_is_processed(world: World) -> None:
    world.create("in")
    world.write("in", [("k", str(number), 7) for number in range(150)])
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).repartition(key=str, value=str, name="all").to("out", key=str, value=str)
    world.run(builder.build())
    assert [row.value for row in world.rows("out")] == [str(number) for number in range(150)]


def test_what_is_left_of_one_topic_when_another_runs_out_keeps_its_place(world: World) -> None:
    world.create("in", 2)
    world.create("other", 2)
    world.write("other", [("k", "other", time) for time in range(10)], 0)
    world.write("other", [("k", "other", time) for time in range(1_000, 1_010)], 1)
    world.write("in", [("k", f"0.{time}", time) for time in range(15)], 0)
    world.write("in", [("k", f"1.{time}", time) for time in range(1_000, 1_015)], 1)
    builder = ks.StreamsBuilder()
    whole = builder.stream("in", key=str, value=str).merge(builder.stream("other", key=str, value=str))
    whole.repartition(key=str, value=str, name="by-value", partitions=1).to("out", key=str, value=str)
    world.run(builder.build())
    [merged] = repartitioned(world)
    assert [row.timestamp for row in merged] == sorted(row.timestamp for row in merged)

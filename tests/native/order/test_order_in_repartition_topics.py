"""What several tasks write to a repartition topic stands in the order of what they had read when they wrote it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError
from tests.native.world import WAIT_S, Output, World

TEXTS = {"key": str, "value": str}
EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2", "commit.interval.ms": 0}


def is_kept(key: str, value: str) -> bool:
    return key != "-"


def filtered(passes: Callable[[str, str], bool] = is_kept) -> ks.Topology:
    """Records but those with key "-" go to one partition."""
    builder = ks.StreamsBuilder()
    kept = builder.stream("in", **TEXTS).filter(passes)
    kept.repartition(name="one", partitions=1, **TEXTS).to("out", **TEXTS)
    return builder.build()


def by_expression() -> ks.Topology:
    """The same in columns."""
    builder = ks.StreamsBuilder()
    kept = builder.stream("in", **TEXTS).filter(ks.key != "-")
    kept.repartition(name="one", partitions=1, **TEXTS).to("out", **TEXTS)
    return builder.build()


def left_in_columns() -> ks.Topology:
    """The filter in columns, what follows record by record."""
    builder = ks.StreamsBuilder()
    kept = builder.stream("in", **TEXTS).filter(ks.key != "-").peek(lambda key, value: None)
    kept.repartition(name="one", partitions=1, **TEXTS).to("out", **TEXTS)
    return builder.build()


def suppressed() -> ks.Topology:
    """The last value of each key, some time after it came."""
    builder = ks.StreamsBuilder()
    table = builder.stream("in", **TEXTS).to_table().suppress(ks.Suppressed.until_time_limit(20))
    table.to_stream().repartition(name="one", partitions=1, **TEXTS).to("out", **TEXTS)
    return builder.build()


def closed_windows() -> ks.Topology:
    """Counts of short windows, each when it closes: in columns, the end of many windows may lie within one batch."""
    builder = ks.StreamsBuilder()
    kept = builder.stream("in", **TEXTS).filter(ks.key != "-").group_by_key()
    counted = kept.windowed_by(ks.TimeWindows(size=5, grace=2)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count()
    text = counted.to_stream(lambda key, _: key.key, key=str).map_values(str, value=str)
    text.repartition(name="one", partitions=1).to("out")
    return builder.build()


def in_topic(world: World) -> list[Output]:
    [rows] = world.partitions("app-one-repartition")
    return rows


def world_of(folder: Path, partitions: Sequence[Sequence[tuple[str, int]]], **settings: Any) -> World:
    """Topic "in" with the (key, time) of each partition; values count the records."""
    world = World(folder, **settings)
    world.create("in", len(partitions))
    for number, part in enumerate(partitions):
        world.write("in", [(key, f"{number}.{i}", time) for i, (key, time) in enumerate(part)], number)
    return world


def filler(first: int, last: int) -> list[tuple[str, int]]:
    """Records that are filtered out: with them, slices end anywhere between two times."""
    return [("-", time) for time in range(first, last)]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("most", [1, 7, 50_000])
@pytest.mark.parametrize("build", [filtered, by_expression, left_in_columns])
def test_a_record_that_was_filtered_out_has_moved_time_all_the_same(
    tmp_path: Path, build: Any, most: int, threads: int
) -> None:
    """p0 holds 100, which is filtered out, then 5; p1 holds 50."""
    parts = [[*filler(0, 40), ("-", 100), ("k", 5), ("k", 101)], [*filler(0, 40), ("k", 50), ("k", 99), ("k", 100)]]
    world = world_of(tmp_path, parts)
    world.run(build(), max_poll_records=most, buffered_records_per_partition=most, num_stream_threads=threads)
    assert [row.timestamp for row in in_topic(world)] == [50, 99, 5, 100, 101]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("most", [1, 7, 50_000])
def test_what_suppress_let_wait_stands_where_it_was_let_go(tmp_path: Path, most: int, threads: int) -> None:
    parts = [[("a", 10), ("b", 40), ("c", 41)], [("d", 15), ("e", 30), ("f", 37), ("g", 60)]]
    world = world_of(tmp_path, parts, **{"statestore.cache.max.bytes": 0})
    limits = {"max_poll_records": most, "buffered_records_per_partition": most}
    world.run(suppressed(), **limits, num_stream_threads=threads)
    # 37 lets d go, 40 lets a go, 60 lets e, f go; the end of input all others, in order of their own times
    assert [row.key for row in in_topic(world)] == ["d", "a", "e", "f", "b", "c", "g"]


@pytest.mark.parametrize("fails_at", ["0.3", "0.41", "1.20", "1.41"])
@pytest.mark.parametrize("threads", [1, 4])
def test_a_restart_in_the_middle_changes_nothing(tmp_path: Path, threads: int, fails_at: str) -> None:
    parts = [[*filler(0, 40), ("-", 100), ("k", 5), ("k", 101)], [*filler(0, 40), ("k", 50), ("k", 99), ("k", 100)]]
    world = world_of(tmp_path, parts, **EXACTLY_ONCE)

    def fail(key: str, value: str) -> bool:
        if value == fails_at:
            raise ValueError(value)
        return key != "-"

    limits = {"max_poll_records": 3, "buffered_records_per_partition": 3, "num_stream_threads": threads}
    with pytest.raises(ProcessingError):
        world.run(filtered(fail), **limits)
    world.run(filtered(), **limits)
    assert [row.timestamp for row in in_topic(world)] == [50, 99, 5, 100, 101]


@pytest.mark.parametrize("stops_at", ["0.20", "0.41", "1.3", "1.41"])
def test_a_stop_in_the_middle_changes_nothing(tmp_path: Path, stops_at: str) -> None:
    parts = [[*filler(0, 40), ("-", 100), ("k", 5), ("k", 101)], [*filler(0, 40), ("k", 50), ("k", 99), ("k", 100)]]
    world = world_of(tmp_path, parts, **EXACTLY_ONCE)
    is_there, may_go_on = threading.Event(), threading.Event()

    def wait(key: str, value: str) -> bool:
        if value == stops_at:
            is_there.set()
            assert may_go_on.wait(WAIT_S)
        return key != "-"

    streams = world.streams(filtered(wait))
    streams.start(until_end=True)
    assert is_there.wait(WAIT_S)
    streams.close(0)
    may_go_on.set()
    assert streams.wait(WAIT_S)
    assert len(in_topic(world)) < 5
    world.run(filtered())
    assert [row.timestamp for row in in_topic(world)] == [50, 99, 5, 100, 101]


def test_late_records_of_a_later_run_wait_for_those_that_its_task_had_passed(tmp_path: Path) -> None:
    """Slices are reckoned by what tasks had reached before, too: p0 had come to 100."""
    world = world_of(tmp_path, [[("k", 100)], [("k", 10)]])
    world.run(filtered(), once=True)
    world.write("in", [("k", "late", time) for time in range(20, 40)], 0)
    world.write("in", [("k", "next", time) for time in range(40, 140)], 1)
    world.run(filtered(), once=True, max_poll_records=5, buffered_records_per_partition=5)
    times = [row.timestamp for row in in_topic(world)]
    assert times == [10, 100, *range(40, 100), *range(20, 40), *range(100, 140)]


records = st.lists(st.tuples(st.sampled_from("k-"), st.integers(0, 40)), max_size=60)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(records, min_size=2, max_size=3),
    st.sampled_from([filtered, by_expression, left_in_columns]),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(1, 20),
)
def test_the_order_is_that_of_stream_time_partition_and_offset(
    tmp_path_factory: Any, parts: list[list[tuple[str, int]]], build: Any, threads: int, most: int, room: int
) -> None:
    world = world_of(tmp_path_factory.mktemp("order"), parts)
    limits = {"max_poll_records": most, "buffered_records_per_partition": room, "columns_min_rows": 0}
    world.run(build(), num_stream_threads=threads, **limits)
    reached = [list(accumulate((time for _, time in part), max)) for part in parts]
    expected = sorted(
        (time, number, i)
        for number, part in enumerate(reached)
        for i, time in enumerate(part)
        if parts[number][i][0] != "-"
    )
    assert [row.value for row in in_topic(world)] == [f"{number}.{i}" for _, number, i in expected]


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, min_size=2, max_size=3), st.integers(1, 40))
def test_what_a_record_lets_go_stands_where_the_record_was_read(
    tmp_path_factory: Any, parts: list[list[tuple[str, int]]], most: int
) -> None:
    found = []
    for min_rows, limit in ((0, 50_000), (1000, 50_000), (0, most)):
        world = world_of(tmp_path_factory.mktemp("order"), parts)
        limits = {"max_poll_records": limit, "buffered_records_per_partition": limit, "columns_min_rows": min_rows}
        world.run(closed_windows(), **limits)
        found.append(in_topic(world))
    assert found[0] == found[1] == found[2]


def test_what_waits_for_a_flush_is_merged_by_its_own_times(tmp_path: Path) -> None:
    """Windows of windows: what the record cache of each task holds covers the same time."""
    builder = ks.StreamsBuilder()
    hours = builder.stream("in", **TEXTS).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0)).count()
    by_value = hours.to_stream(lambda key, _: "all", key=str).group_by_key(name="one", key=str, value=int)
    days = by_value.windowed_by(ks.TimeWindows(size=100, grace=0)).aggregate(int, lambda key, new, old: old + new)
    days.to_stream(lambda key, _: str(key.window.start_ms), key=str).to("out", key=str, value=int)
    parts = [[(f"k{number}", time) for time in range(0, 2000, 5)] for number in range(3)]
    world = world_of(tmp_path, parts)
    streams = world.run(builder.build())
    assert not streams.progress().dropped
    assert world.table("out", value=int) == Counter(str(time // 100 * 100) for part in parts for _, time in part)

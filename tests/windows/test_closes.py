"""Emission on close: every closed window once, also where time jumps past all that a store retains."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.serdes import TimeWindowedSerde, serde_of
from kstreams.testing import TopologyTestDriver
from tests.extension.two_runs import natively, on_spark
from tests.spark.running import Row
from tests.support.examples import examples, few_of
from tests.windows.aggregating import ON_CLOSE
from tests.windows.final_windows import final_windows
from tests.windows.one_task import output

HOUR = 3_600_000


def counted(windowed: ks.WindowedKStream, kept: ks.Materialized) -> ks.KTable:
    return windowed.count(kept)


def folded(windowed: ks.WindowedKStream, kept: ks.Materialized) -> ks.KTable:
    merger = {"merger": lambda key, a, b: a + b} if isinstance(windowed, ks.SessionWindowedKStream) else {}
    return windowed.aggregate(int, lambda key, value, count: count + 1, **merger, value=int, materialized=kept)


def by_expressions(windowed: ks.WindowedKStream, kept: ks.Materialized) -> ks.KTable:
    return windowed.aggregate(records=ks.len(), materialized=kept).map_values(lambda kept: kept.records, value=int)


def application(windows: ks.Windows, aggregate=counted, kept: ks.Materialized | None = None) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).emit_strategy(ON_CLOSE)
    table = aggregate(stream, kept or ks.Materialized("store"))
    table.to_stream(lambda k, v: f"{k.key}@{k.window.start_ms}/{k.window.end_ms}", key=str).to("out", value=int)
    return builder


def wanted(windows: ks.Windows, rows: list[tuple[str, int]]) -> list[tuple[str, int, int]]:
    finals = final_windows(windows, [(key, "v", time) for key, time in rows])
    return [(f"{final.key}@{final.start_ms}/{final.end_ms}", final.value, final.timestamp_ms) for final in finals]


short, graces = st.integers(1, 30), st.sampled_from([0, 0, 1, 7, 40])
windows_ = st.one_of(
    st.builds(lambda size, grace: ks.TimeWindows(size=size, grace=grace), short, graces),
    st.builds(
        lambda advance, more, grace: ks.TimeWindows(size=advance + more, advance=advance, grace=grace),
        short, short, graces,
    ),
    st.builds(lambda difference, grace: ks.SlidingWindows(difference=difference, grace=grace), short, graces),
    st.builds(lambda gap, grace: ks.SessionWindows(gap=gap, grace=grace), short, graces),
)  # fmt: skip
steps_ = st.one_of(st.integers(0, 12), st.integers(-40, 0), st.sampled_from([0, 100, 1_000, 70_000, HOUR, 10**9]))


def moved(steps: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keys and times, from keys and the steps between times."""
    times = accumulate((step for _, step in steps), lambda time, step: max(0, time + step), initial=0)
    return [(key, time) for (key, _), time in zip(steps, list(times)[1:], strict=True)]


rows_ = st.lists(st.tuples(st.sampled_from("abc"), steps_), min_size=1, max_size=30).map(moved)
cuts_ = st.sets(st.integers(0, 30), max_size=4)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Any, ...]:
    """A kind of windows, records, where restarts cut them, and how they are aggregated and retained."""
    retained = st.tuples(st.sampled_from([None, 0, 13, HOUR]), st.booleans())
    return (
        draw(windows_),
        draw(rows_),
        draw(cuts_),
        draw(st.sampled_from([None, 1, 3])),
        draw(st.sampled_from([0, 100_000])),
        draw(st.sampled_from([counted, folded, by_expressions])),
        draw(retained),
    )


def check_each_once(run: tuple[Any, ...]) -> None:
    windows, rows, cuts, at_a_time, cache_bytes, aggregate, (more_ms, caching) = run
    retention = None if more_ms is None else windows.retention_ms + more_ms
    materialized = ks.Materialized("store", caching=caching, retention=retention)
    builder = application(windows, aggregate, materialized)
    assert output(builder, cache_bytes, rows, cuts, at_a_time) == wanted(windows, rows)


@settings(max_examples=examples(150), deadline=None)
@given(runs())
def test_every_closed_window_is_emitted_once(run: tuple[Any, ...]) -> None:
    check_each_once(run)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=2_000, deadline=None)
@given(runs())
def test_every_closed_window_is_emitted_once_in_many_examples(run: tuple[Any, ...]) -> None:
    check_each_once(run)


KINDS = [
    ks.TimeWindows(size=10, grace=5),
    ks.TimeWindows(size=10, advance=4, grace=5),
    ks.SlidingWindows(difference=10, grace=5),
    ks.SessionWindows(gap=8, grace=5),
]
JUMPS = moved([
    ("a", 0), ("b", 3), ("a", 4), ("b", 2_000), ("a", 3), ("b", -9), ("a", HOUR), ("c", 5), ("c", 60 * HOUR),
    ("a", 1), ("b", -2), ("a", 9_000 * HOUR), ("c", 20), ("b", 40), ("a", 70_000), ("a", 2), ("b", -60),
])  # fmt: skip
"""Time jumps by seconds, an hour, days and a year; some records are late."""
TYPES = {"in": (str, str), "out": (str, int)}
ROWS = [Row("in", key, "v", time, 0) for key, time in JUMPS]


def by_key(rows: Any) -> dict[str, list[tuple[int, int]]]:
    updates: dict[str, list[tuple[int, int]]] = {}
    for key, value, time in rows:
        updates.setdefault(key, []).append((value, time))
    return updates


@pytest.mark.parametrize("windows", KINDS, ids=str)
@pytest.mark.parametrize("cache_bytes", [0, 100_000])
def test_natively_windows_that_a_jump_closes_survive_restarts(tmp_path: Path, windows: Any, cache_bytes: int) -> None:
    topology = application(windows).build()
    expected = by_key(wanted(windows, JUMPS))
    settings = {"statestore.cache.max.bytes": cache_bytes}
    assert natively(tmp_path, topology, TYPES, ROWS, stays_open=True, **settings) == expected


@pytest.mark.spark
@pytest.mark.parametrize("windows", few_of(KINDS, 1), ids=str)
def test_on_spark_windows_that_a_jump_closes_survive_steps(spark: Any, tmp_path: Path, windows: Any) -> None:
    assert on_spark(spark, tmp_path, application(windows).build(), TYPES, ROWS, stays_open=True) == by_key(
        wanted(windows, JUMPS)
    )


@pytest.mark.slow
@pytest.mark.spark
def test_on_the_relational_path_windows_that_a_jump_closes_survive_batches(spark: Any, tmp_path: Path) -> None:
    windows = ks.TimeWindows(size=10, grace=5)
    on_time = [(key, max(time for _, time in JUMPS[: at + 1])) for at, (key, time) in enumerate(JUMPS)]
    rows = [Row("in", key, "v", time, 0) for key, time in on_time]
    relational = {"spark.kstreams.path": "relational"}
    builder = ks.StreamsBuilder()
    counts = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).emit_strategy(ON_CLOSE)
    counts.count().to_stream().to("out")
    types = {**TYPES, "out": (TimeWindowedSerde(serde_of(str), 10), int)}
    written = on_spark(spark, tmp_path, builder.build(), types, rows, stays_open=True, **relational)
    named = {f"{key.key}@{key.window.start_ms}/{key.window.end_ms}": updates for key, updates in written.items()}
    assert named == by_key(wanted(windows, on_time))


@pytest.mark.parametrize("windows", KINDS, ids=str)
def test_what_comes_after_the_end_of_the_input_is_late_for_what_it_closed(windows: Any) -> None:
    builder = application(windows)
    with TopologyTestDriver(builder.build()) as driver:
        topic, out = (
            driver.create_input_topic("in", key=str, value=str),
            driver.create_output_topic("out", key=str, value=int),
        )
        topic.pipe_input("a", "v", 5)
        driver.end_of_input()
        closed = [record.key for record in out.read_records()]
        topic.pipe_input("a", "v", 5)
        topic.pipe_input("a", "v", HOUR)
        driver.end_of_input()
        later = [record.key for record in out.read_records()]
    assert closed
    assert later
    assert not set(closed) & set(later)
    assert all(int(key.partition("@")[2].partition("/")[0]) > HOUR // 2 for key in later)


@pytest.mark.parametrize("windows", KINDS, ids=str)
@pytest.mark.parametrize("cache_bytes", [0, 100_000])
def test_suppress_loses_none_in_a_jump(windows: Any, cache_bytes: int) -> None:
    builder = ks.StreamsBuilder()
    table = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count()
    final = table.suppress(ks.Suppressed.until_window_closes())
    final.to_stream(lambda k, v: f"{k.key}@{k.window.start_ms}/{k.window.end_ms}", key=str).to("out", value=int)
    for cuts in (set(), {4, 7, 12}):
        assert by_key(output(builder, cache_bytes, JUMPS, cuts)) == by_key(wanted(windows, JUMPS))


def test_an_outer_join_loses_no_unmatched_row_in_a_jump() -> None:
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    joined = left.outer_join(
        right,
        lambda one, other: f"{one}+{other}",
        windows=ks.JoinWindows.of(10, grace=5),
        key=str, value=str, other_value=str,
    )  # fmt: skip
    joined.to("out", value=str)
    with TopologyTestDriver(builder.build()) as driver:
        topics = [driver.create_input_topic(name, key=str, value=str) for name in ("left", "right")]
        for at, (key, time) in enumerate(JUMPS):
            topics[at % 2].pipe_input(f"{key}{at}", str(at), time)
        driver.end_of_input()
        records = driver.create_output_topic("out", key=str, value=str).read_records()
    sides = [f"{at}+None" if at % 2 == 0 else f"None+{at}" for at in range(len(JUMPS))]
    assert sorted(record.value for record in records) == sorted(sides)

"""Emission on close: every closed window once, also where time jumps past all that a store retains."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from tests.support.examples import examples
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


@settings(max_examples=examples(2_100), deadline=None)
@given(
    windows=windows_,
    rows=rows_,
    cuts=cuts_,
    at_a_time=st.sampled_from([None, 1, 3]),
    cache_bytes=st.sampled_from([0, 100_000]),
    aggregate=st.sampled_from([counted, folded, by_expressions]),
    kept=st.builds(lambda more, caching: (more, caching), st.sampled_from([None, 0, 13, HOUR]), st.booleans()),
)
def test_every_closed_window_is_emitted_once(windows, rows, cuts, at_a_time, cache_bytes, aggregate, kept) -> None:
    more_ms, caching = kept
    retention = None if more_ms is None else windows.retention_ms + more_ms
    materialized = ks.Materialized("store", caching=caching, retention=retention)
    builder = application(windows, aggregate, materialized)
    assert output(builder, cache_bytes, rows, cuts, at_a_time) == wanted(windows, rows)

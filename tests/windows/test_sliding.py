"""Sliding windows: one for each set of records that lie close together, however late they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams import expressions as ex
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver
from kstreams.windows.sliding import placements
from tests.dsl.driven import UNCACHED, run
from tests.windows.aggregating import ON_CLOSE, ON_UPDATE, counts, few, latest, records_of, windowed, written

rows_ = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 60)), max_size=20)
differences = st.integers(0, 12)


def rows_at(*times, key="k"):
    return [(key, "v", time) for time in times]


def by_definition(rows, difference):
    """The windows that hold something: the one that ends with each record, and the one that starts behind it."""
    found = {}
    for key in "ab":
        times = [time for k, _, time in rows if k == key]
        for time in times:
            for start in (max(0, time - difference), time + 1):
                inside = [t for t in times if start <= t <= start + difference]
                if inside:
                    found[f"{key}@{start}/{start + difference}"] = len(inside)
    return found


@few
@given(rows_, differences, st.sampled_from([ON_CLOSE, ON_UPDATE]))
def test_windows_and_their_counts_are_those_of_the_definition(rows, difference, emit):
    windows = ks.SlidingWindows(difference=difference, grace=200)
    assert latest(counts(windows, rows, emit)) == by_definition(rows, difference)


@few
@given(rows_, differences)
def test_with_the_record_cache_too(rows, difference):
    windows = ks.SlidingWindows(difference=difference, grace=200)
    assert latest(counts(windows, rows, config=None)) == by_definition(rows, difference)


@few
@given(st.lists(st.integers(0, 60), max_size=12), differences)
def test_what_is_placed_is_what_changed(times, difference):
    """The pure function alone, over a dict of windows to the records they hold."""
    kept: dict[int, list[int]] = {}
    for number, time in enumerate(times):
        near = sorted((s for s in kept if time - 2 * difference <= s <= time + 1), reverse=True)
        before = {start: list(held) for start, held in kept.items()}
        for start, like, takes_record in placements([(s, max(kept[s])) for s in near], time, difference):
            held = before[like] if like is not None else []
            kept[start] = [t for t in held if t >= start] + ([time] if takes_record else [])
        seen = times[: number + 1]
        for start, held in kept.items():
            assert sorted(held) == sorted(t for t in seen if start <= t <= start + difference)


@few
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 12)), max_size=20),
    st.integers(8, 12),
    st.integers(0, 10),
)
def test_on_close_every_window_comes_once_as_the_last_update_left_it(steps, difference, grace):
    rows, now = [], 0
    for key, step, back in steps:  # stream time never leaps: windows would expire before they were emitted
        now += step
        rows.append((key, "v", max(0, now - back)))
    windows = ks.SlidingWindows(difference=difference, grace=grace)
    finals = counts(windows, rows, ON_CLOSE)
    assert {key: count for key, count, _ in finals} == latest(counts(windows, rows))
    assert len({key for key, *_ in finals}) == len(finals)


def test_a_record_between_two_others_changes_the_latest_window_first():
    rows = [("a", "v", 20), ("a", "v", 25), ("a", "v", 22)]
    assert counts(ks.SlidingWindows(difference=10, grace=10), rows) == [
        ("a@10/20", 1, 20),
        ("a@21/31", 1, 25),
        ("a@15/25", 2, 25),
        ("a@21/31", 2, 25),
        ("a@15/25", 3, 25),
        ("a@12/22", 2, 22),
        ("a@23/33", 1, 25),
    ]


def test_early_records_share_one_window_from_the_epoch_on():
    assert counts(ks.SlidingWindows(difference=10), rows_at(2, 5)) == [
        ("k@0/10", 1, 2),
        ("k@3/13", 1, 5),
        ("k@0/10", 2, 5),
    ]


def test_a_window_takes_records_until_stream_time_has_passed_its_end_and_grace():
    windows = ks.SlidingWindows(difference=10, grace=5)
    assert "k@25/35" in latest(counts(windows, rows_at(40, 35)))
    assert "k@25/35" not in latest(counts(windows, rows_at(41, 35)))


def test_a_late_record_may_be_in_time_for_some_windows_alone():
    builder, stream = windowed(ks.SlidingWindows(difference=10, grace=4))
    written(stream.count())
    with TopologyTestDriver(builder.build(), {"application.id": "app"}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for row in rows_at(20, 35, 28):
            topic.pipe_input(*row)
        assert sum(driver.dropped.values()) == 1  # for [18, 28], which has ended; [21, 31] and [25, 35] still take it


def test_null_keys_and_values_are_dropped():
    assert counts(ks.SlidingWindows(difference=10), [(None, "v", 20), ("k", None, 20)]) == []


def test_an_aggregate_of_none_deletes_its_window():
    builder, stream = windowed(ks.SlidingWindows(difference=10))
    written(stream.aggregate(str, lambda key, value, text: None if len(text) == 1 else text + value, value=str))
    assert run(builder, rows_at(20, 20), UNCACHED) == [("k@10/20", "v", 20), ("k@10/20", None, 20)]


def test_an_aggregator_may_change_its_aggregate_in_place():
    def collect(key, value, values):
        values.append(value)
        return values

    builder, stream = windowed(ks.SlidingWindows(difference=10, grace=10))
    written(stream.aggregate(list, collect, value=list[str]))
    rows = [("k", "a", 20), ("k", "b", 28), ("k", "c", 24)]
    assert latest(run(builder, rows, UNCACHED, value=list[str])) == {
        "k@10/20": ["a"],
        "k@21/31": ["b", "c"],
        "k@18/28": ["a", "b", "c"],
        "k@14/24": ["a", "c"],
        "k@25/35": ["b"],
    }


def test_headers_are_those_of_the_record_that_changed_the_window():
    records = [ks.Record(key="k", value="v", timestamp=time, headers=[("n", b"%d" % time)]) for time in (20, 25)]
    builder, stream = windowed(ks.SlidingWindows(difference=10))
    written(stream.count())
    assert [dict(record.headers)["n"] for record in records_of(builder, records, value=int)] == [b"20", b"25", b"25"]


@few
@given(rows_, differences)
def test_named_expressions_agree_with_functions(rows, difference):
    windows = ks.SlidingWindows(difference=difference, grace=200)
    builder, stream = windowed(windows)
    written(stream.aggregate(n=ex.len(), value=dict))
    by_expression = run(builder, rows, UNCACHED, value=dict)
    assert [(key, row["n"], time) for key, row, time in by_expression] == counts(windows, rows)


def test_windows_of_one_instant_hold_the_records_of_this_instant():
    assert counts(ks.SlidingWindows(difference=0, grace=1), rows_at(5, 5, 6)) == [
        ("k@5/5", 1, 5),
        ("k@5/5", 2, 5),
        ("k@6/6", 1, 6),
    ]


def test_a_retention_that_is_too_short_is_refused():
    _, stream = windowed(ks.SlidingWindows(difference=10, grace=5))
    with pytest.raises(TopologyError, match="25 ms at least"):
        stream.count(ks.Materialized("store", retention=24))


def test_an_unnamed_count_takes_no_number_too_many():
    builder, stream = windowed(ks.SlidingWindows(difference=10))
    stream.count(key=str)
    assert "KSTREAM-AGGREGATE-0000000002" in builder.build().describe()

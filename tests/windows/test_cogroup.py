"""Cogrouped streams: each input has its aggregator, all of them make one table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from tests.dsl.driven import UNCACHED, run
from tests.windows.aggregating import few, latest, shown, written
from tests.windows.one_task import output

rows_ = st.lists(
    st.tuples(st.sampled_from(["in", "two"]), st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 60)),
    max_size=25,
)
SIGNS = {"in": "+", "two": "-"}


def cogrouped():
    builder = ks.StreamsBuilder()
    one, two = (builder.stream(topic, key=str, value=str).group_by_key() for topic in SIGNS)
    plus, minus = (lambda key, value, text, sign=sign: f"{text}{sign}{value}" for sign in SIGNS.values())
    return builder, one.cogroup(plus).cogroup(two, minus)


@pytest.mark.parametrize("config", [None, UNCACHED])
@few
@given(rows=rows_)
def test_each_record_goes_through_the_aggregator_of_its_stream(rows, config):
    builder, streams = cogrouped()
    streams.aggregate(str, value=str).to_stream().to("out")
    expected, table, newest = [], {}, {}
    for topic, key, value, time in rows:
        table[key] = f"{table.get(key, '')}{SIGNS[topic]}{value}"
        newest[key] = max(newest.get(key, -1), time)
        expected.append((key, table[key], newest[key]))
    assert run(builder, rows, config) == expected


@few
@given(rows_, st.integers(1, 12), st.integers(0, 10))
def test_every_stream_has_its_own_stream_time_by_which_windows_close(rows, size, grace):
    builder, streams = cogrouped()
    written(streams.windowed_by(ks.TimeWindows(size=size, grace=grace)).aggregate(str, value=str))
    table, stream_time, newest = {}, dict.fromkeys(SIGNS, -1), -1
    for topic, key, value, time in rows:
        stream_time[topic] = max(stream_time[topic], time)
        start = time // size * size
        if start + size + grace > stream_time[topic]:
            place = f"{key}@{start}/{start + size}"
            before = table.get(place, "") if start > newest - size - grace else ""  # what has expired begins anew
            table[place], newest = f"{before}{SIGNS[topic]}{value}", max(newest, start)
    assert latest(run(builder, rows, UNCACHED)) == table


@pytest.mark.parametrize(("config", "text"), [({}, "+x-z"), (UNCACHED, "-z")], ids=["cached", "uncached"])
@pytest.mark.parametrize(
    "windows",
    [ks.TimeWindows(size=20), ks.TimeWindows(size=20, advance=10), ks.SlidingWindows(difference=20)],
    ids=["tumbling", "hopping", "sliding"],
)
def test_only_with_the_cache_a_stream_that_lags_finds_what_has_expired(windows, config, text):
    builder, streams = cogrouped()
    written(streams.windowed_by(windows).aggregate(str, value=str))
    rows = [("in", "a", "x", 0), ("in", "a", "p", 58), ("in", "a", "q", 63), ("two", "a", "z", 0)]
    assert run(builder, rows, config)[-1] == ("a@0/20", text, 0)


@few
@given(rows_, st.integers(1, 12))
def test_sessions_take_in_the_records_of_all_streams(rows, gap):
    builder, streams = cogrouped()
    sessions = streams.windowed_by(ks.SessionWindows(gap=gap, grace=100))
    written(sessions.aggregate(str, merger=lambda key, a, b: a + b, value=str))
    for session, text in latest(run(builder, rows, UNCACHED)).items():
        start, end = map(int, session[2:].split("/"))
        inside = [f"{SIGNS[topic]}{value}" for topic, k, value, t in rows if k == session[0] and start <= t <= end]
        assert sorted(text[i : i + 2] for i in range(0, len(text), 2)) == sorted(inside)


@few
@given(rows_, st.integers(1, 12))
def test_sliding_windows_take_in_the_records_of_all_streams(rows, difference):
    builder, streams = cogrouped()
    written(streams.windowed_by(ks.SlidingWindows(difference=difference, grace=200)).aggregate(str, value=str))
    for window, text in latest(run(builder, rows, UNCACHED)).items():
        start, end = map(int, window[2:].split("/"))
        inside = [t for _, k, _, t in rows if k == window[0] and start <= t <= end]
        assert len(text) == 2 * len(inside)


def test_null_keys_and_values_are_dropped():
    builder, streams = cogrouped()
    streams.aggregate(str, value=str).to_stream().to("out")
    assert run(builder, [("in", None, "v", 1), ("two", "k", None, 2)]) == []


def test_the_record_cache_is_one_for_all_streams():
    builder = ks.StreamsBuilder()
    records = builder.stream("in", key=str, value=str)
    again = records.filter(lambda key, value: key == "b").group_by_key()
    streams = records.group_by_key().cogroup(lambda key, value, n: n + 1).cogroup(again, lambda key, value, n: n + 10)
    streams.aggregate(int, value=int).to_stream().to("out", value=int)
    in_one_commit = output(builder, 1_000, [("b", 1), ("a", 2), ("b", 3), ("a", 4)], set())
    assert in_one_commit == [("b", 22, 3), ("a", 2, 4)]


def test_a_name_names_every_step():
    builder, streams = cogrouped()
    streams.aggregate(str, value=str, name="total", materialized="totals").to_stream().to("out")
    text = builder.build().describe()
    assert all(name in text for name in ("total-cogroup-agg-0", "total-cogroup-agg-1", "total-cogroup-merge"))


def test_streams_with_changed_keys_are_repartitioned_together():
    builder = ks.StreamsBuilder()
    named = {"name": "first-by-value"}
    one, two = (builder.stream(topic, key=str, value=str) for topic in SIGNS)
    first = one.group_by(lambda key, value: value, key=str, **named)
    streams = first.cogroup(lambda key, value, n: n + 1).cogroup(two.group_by_key(), lambda key, value, n: n - 1)
    streams.aggregate(int, value=int).to_stream().to("out")
    topology = builder.build()
    assert "COGROUPKSTREAM-AGGREGATE-0000000008 (stores: [COGROUPKSTREAM-AGGREGATE-STATE" in topology.describe()
    assert {"first-by-value-repartition", "two"} in [set(group) for group in topology.copartition_groups]
    rows = [("in", "x", "k", 1), ("two", "k", "v", 2)]
    assert run(builder, rows, value=int) == [("k", 1, 1), ("k", 0, 2)]


def test_two_repartitions_need_names():
    builder = ks.StreamsBuilder()
    one, two = (
        builder.stream(topic, key=str, value=str).group_by(lambda key, value: value, key=str) for topic in SIGNS
    )
    streams = one.cogroup(lambda key, value, n: n + 1).cogroup(two, lambda key, value, n: n + 1)
    with pytest.raises(TopologyError, match="give one of them another name="):
        streams.aggregate(int, value=int, materialized="store")


def test_its_table_can_be_joined_and_grouped_anew():
    builder, streams = cogrouped()
    table = streams.aggregate(str, value=str, materialized="texts")
    lengths = table.group_by(lambda key, text: ("all", len(text)), key=str, value=int)
    lengths.reduce(lambda a, b: a + b, lambda a, b: a - b).to_stream().to("out")
    rows = [("in", "a", "x", 1), ("two", "b", "y", 2), ("two", "a", "z", 3)]
    assert run(builder, rows, UNCACHED, value=int)[-1] == ("all", 6, 3)


def test_the_key_of_a_windowed_cogroup_shows_its_window():
    builder, streams = cogrouped()
    table = streams.windowed_by(ks.UnlimitedWindows(start=5)).aggregate(str, value=str)
    table.to_stream(shown, key=str).to("out")
    assert run(builder, [("in", "k", "v", 4), ("two", "k", "v", 5)]) == [(f"k@5/{2**63 - 1}", "-v", 5)]

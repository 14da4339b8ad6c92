"""Aggregations by key and by window: what counts, what is late, what is emitted and when."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams import expressions as ex
from kstreams.testing import TopologyTestDriver
from tests.dsl.driven import UNCACHED, run

AT_CLOSE = ks.EmitStrategy.ON_WINDOW_CLOSE


def window_and_key(windowed, value):
    return f"{windowed.key}@{windowed.window.start_ms}"


def counted(windows, emit=ks.EmitStrategy.ON_WINDOW_UPDATE):
    builder = ks.StreamsBuilder()
    windowed = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).emit_strategy(emit)
    windowed.count("counts").to_stream(window_and_key, key=str).to("out")
    return builder


def rows_at(*times):
    return [("k", "v", time) for time in times]


def test_null_keys_and_values_do_not_count():
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count().to_stream().to("out")
    rows = [("a", "1", 1), (None, "2", 2), ("a", None, 3), ("a", "4", 4)]
    assert run(builder, rows, value=int) == [("a", 1, 1), ("a", 2, 4)]


def test_a_result_has_the_time_of_its_latest_record():
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count().to_stream().to("out")
    assert run(builder, rows_at(5, 3), value=int) == [("k", 1, 5), ("k", 2, 5)]


def test_the_first_value_of_a_reduce_stands_for_itself():
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().reduce(lambda a, b: f"{a},{b}").to_stream().to("out")
    assert run(builder, [("a", "1", 1), ("a", "2", 2)]) == [("a", "1", 1), ("a", "1,2", 2)]


def test_an_aggregate_of_none_deletes_and_starts_anew():
    def until_two(key, value, aggregate) -> str:
        return None if len(aggregate) == 2 else aggregate + value

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().aggregate(str, until_two).to_stream().to("out")
    assert [value for _, value, _ in run(builder, rows_at(1, 2, 3, 4))] == ["v", "vv", None, "v"]


def test_an_aggregator_may_change_its_aggregate_in_place():
    def collect(key, value, aggregate):
        aggregate.append(value)
        return aggregate

    builder = ks.StreamsBuilder()
    lists = builder.stream("in", key=str, value=str).group_by_key().aggregate(list, collect, value=list[str])
    lists.to_stream().to("out")
    rows = [("a", "1", 1), ("a", "2", 2)]
    assert [value for _, value, _ in run(builder, rows, UNCACHED, value=list[str])] == [["1"], ["1", "2"]]


class Delays(msgspec.Struct):
    flights: int
    mean: float | None


@pytest.mark.parametrize("config", [None, UNCACHED])
def test_named_expressions_make_a_row(config):
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=int).group_by_key()
    grouped.aggregate(flights=ex.len(), mean=ex.value.mean(), value=Delays).to_stream().to("out")
    rows = run(builder, [("a", 1, 1), ("a", 4, 2)], config, value_in=int, value=Delays)
    assert rows == [("a", Delays(1, 1.0), 1), ("a", Delays(2, 2.5), 2)]


def test_a_join_sees_the_result_of_named_expressions_not_their_state():
    builder = ks.StreamsBuilder()
    numbers = builder.stream("in", key=str, value=int)
    means = numbers.group_by_key().aggregate(mean=ex.value.mean(), value=dict[str, float])
    numbers.join(means, lambda number, row: f"{number} of {row['mean']}").to("out", value=str)
    assert run(builder, [("a", 2, 1)], value_in=int) == [("a", "2 of 2.0", 1)]


def test_a_tumbling_window_takes_records_until_its_end_and_grace_have_passed():
    rows = run(counted(ks.TimeWindows(size=10, grace=5)), rows_at(1, 14, 9, 15, 9), value=int)
    assert rows == [("k@0", 1, 1), ("k@10", 1, 14), ("k@0", 2, 9), ("k@10", 2, 15)]


def test_null_values_count_in_windows():
    assert run(counted(ks.TimeWindows(size=10)), [("k", None, 1)], value=int) == [("k@0", 1, 1)]


def test_a_late_record_may_still_be_in_time_for_some_hopping_windows():
    builder = counted(ks.TimeWindows(size=10, advance=5))
    with TopologyTestDriver(builder.build(), {"application.id": "app"}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for row in rows_at(7, 12, 8):
            topic.pipe_input(*row)
        out = driver.create_output_topic("out", key=str, value=int)
        assert out.read_key_values() == [("k@0", 1), ("k@5", 1), ("k@5", 2), ("k@10", 1), ("k@5", 3)]
        assert list(driver.dropped.values()) == [1]


def test_at_their_close_windows_are_emitted_once_in_order_of_time_and_key():
    rows = [("b", "v", 1), ("a", "v", 2), ("a", "v", 3), ("c", "v", 12), ("a", "v", 25)]
    assert run(counted(ks.TimeWindows(size=10), AT_CLOSE), rows, value=int) == [
        ("a@0", 2, 3),
        ("b@0", 1, 1),
        ("c@10", 1, 12),
        ("a@20", 1, 25),  # at the end of input
    ]


def test_an_unlimited_window_holds_everything_from_its_start_on():
    rows = run(counted(ks.UnlimitedWindows(start=5)), rows_at(4, 5, 10**9), value=int)
    assert rows == [("k@5", 1, 5), ("k@5", 2, 10**9)]


@given(
    size=st.integers(1, 12),
    advance=st.integers(1, 12),
    grace=st.integers(0, 12),
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.just("v"), st.integers(0, 60)), max_size=25),
)
def test_windowed_counts_agree_with_the_definition(size, advance, grace, rows):
    windows = ks.TimeWindows(size=size, advance=min(size, advance), grace=grace)
    expected, stream_time = {}, -1
    for key, _, time in rows:
        stream_time = max(stream_time, time)
        for start in range(0, time + 1, windows.advance_ms):
            if start <= time < start + size and start + size + grace > stream_time:
                expected[f"{key}@{start}"] = expected.get(f"{key}@{start}", 0) + 1
    updates = run(counted(windows), list(rows), value=int)
    assert {key: count for key, count, _ in updates} == expected
    finals = run(counted(windows, AT_CLOSE), list(rows), value=int)
    assert len(finals) == len(expected)
    assert {key: count for key, count, _ in finals} == expected

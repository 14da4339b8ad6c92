"""A restart changes no decision about lateness or closing: operators go on with what they told the commit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from tests.windows.aggregating import few
from tests.windows.one_task import output


def count(windowed):
    """Counts record by record, whatever the windows."""
    merger = {"merger": lambda key, a, b: a + b} if isinstance(windowed, ks.SessionWindowedKStream) else {}
    return windowed.aggregate(int, lambda key, value, count: count + 1, **merger, value=int)


def results(windows, emit, cache_bytes, rows, cuts, *, suppress=False):
    """The output for rows (key, time) when the task is made anew at each cut."""
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    table = count(grouped.windowed_by(windows).emit_strategy(emit))
    table = table.suppress(ks.Suppressed.until_window_closes()) if suppress else table
    table.to_stream(lambda k, v: f"{k.key}@{k.window.start_ms}", key=str).to("out", value=int)
    return output(builder, cache_bytes, rows, cuts)


KINDS = [ks.TimeWindows(size=10, grace=5), ks.SlidingWindows(difference=10, grace=5), ks.SessionWindows(gap=5, grace=5)]
rows_ = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=1, max_size=20)
cuts_ = st.sets(st.integers(0, 20), max_size=3)


@pytest.mark.parametrize("windows", KINDS, ids=lambda windows: type(windows).__name__)
@pytest.mark.parametrize("emit", ks.EmitStrategy)
@few
@given(rows=rows_, cuts=cuts_)
def test_a_restart_is_not_seen(windows, emit, rows, cuts):
    assert results(windows, emit, 0, rows, cuts) == results(windows, emit, 0, rows, set())
    if emit is ks.EmitStrategy.ON_WINDOW_CLOSE:
        assert results(windows, emit, 1_000, rows, cuts) == results(windows, emit, 1_000, rows, set())


@pytest.mark.parametrize("windows", KINDS, ids=lambda windows: type(windows).__name__)
@few
@given(rows=rows_, cuts=cuts_)
def test_what_is_held_back_waits_through_a_restart(windows, rows, cuts):
    on_update = ks.EmitStrategy.ON_WINDOW_UPDATE
    assert results(windows, on_update, 0, rows, cuts, suppress=True) == results(
        windows, on_update, 0, rows, set(), suppress=True
    )


@few
@given(rows=rows_, cuts=cuts_)
def test_cogrouped_streams_go_on_where_they_were(rows, cuts):
    def cogrouped():
        builder = ks.StreamsBuilder()
        records = builder.stream("in", key=str, value=str)
        again = records.filter(lambda key, value: key == "a").group_by_key()
        streams = records.group_by_key().cogroup(lambda key, value, n: n + 1).cogroup(again, lambda key, value, n: -n)
        table = streams.windowed_by(ks.SlidingWindows(difference=10, grace=5)).aggregate(int, value=int)
        table.to_stream(lambda k, v: f"{k.key}@{k.window.start_ms}", key=str).to("out", value=int)
        return builder

    assert output(cogrouped(), 0, rows, cuts) == output(cogrouped(), 0, rows, set())

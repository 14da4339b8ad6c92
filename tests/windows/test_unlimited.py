"""Unlimited windows: everything from a start on, and never an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from tests.windows.aggregating import ON_CLOSE, counts, few, windowed

END = 2**63 - 1


@few
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.just("v"), st.integers(0, 60)), max_size=20),
    st.integers(0, 60),
    st.sampled_from([None, {"statestore.cache.max.bytes": 0}]),
)
def test_records_count_from_the_start_on_however_late_they_come(rows, start, config):
    expected, so_far, newest = [], {}, {}
    for key, _, time in rows:
        if time >= start:
            so_far[key], newest[key] = so_far.get(key, 0) + 1, max(newest.get(key, -1), time)
            expected.append((f"{key}@{start}/{END}", so_far[key], newest[key]))
    assert counts(ks.UnlimitedWindows(start=start), rows, config=config) == expected


def test_to_emit_them_on_close_is_refused():
    with pytest.raises(ValueError, match="unlimited windows never close: emit them on update"):
        windowed(ks.UnlimitedWindows(), ON_CLOSE)


def test_windows_of_joins_are_none_to_aggregate_by():
    grouped = ks.StreamsBuilder().stream("in", key=str, value=str).group_by_key()
    with pytest.raises(TopologyError, match=r"SlidingWindows, SessionWindows, UnlimitedWindows.*, not Join"):
        grouped.windowed_by(ks.JoinWindows.of(10))
    with pytest.raises(TopologyError, match="windowed_by"):
        grouped.cogroup(lambda key, value, total: total).windowed_by(ks.JoinWindows.of(10))

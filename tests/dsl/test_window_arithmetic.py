"""Windows: their bounds against brute force, and what cannot be a window."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks

times = st.integers(0, 500)


@st.composite
def time_windows(draw):
    size = draw(st.integers(1, 60))
    return ks.TimeWindows(size=size, advance=draw(st.integers(1, size)), grace=draw(st.integers(0, 60)))


@given(time_windows(), times)
def test_a_record_is_in_the_windows_that_hold_its_time(windows, time):
    starts = range(0, time + 1, windows.advance_ms)
    assert list(windows.starts_at(time)) == [start for start in starts if start <= time < start + windows.size_ms]


@given(time_windows(), st.integers(-100, 500))
def test_the_last_window_to_end_until_a_time(windows, end):
    ended = [start for start in range(0, 501, windows.advance_ms) if start + windows.size_ms <= end]
    found = windows.starts_ending_until(end)
    assert found == ended[-1] if ended else found < 0


@given(time_windows())
def test_windows_are_kept_until_they_take_no_more_records(windows):
    assert windows.retention_ms == windows.size_ms + windows.grace_ms


@given(times, times)
def test_an_unlimited_window_holds_all_from_its_start_on(start, time):
    assert list(ks.UnlimitedWindows(start=start).starts_at(time)) == ([start] if time >= start else [])


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-200, 200))
def test_a_join_window_swapped_says_the_same_of_the_other_side(before, after, difference):
    if before + after < 0:
        with pytest.raises(ValueError, match="must not end"):
            ks.JoinWindows(before=before, after=after)
        return
    left = ks.JoinWindows(before=before, after=after)
    right = left.swapped()
    assert (-left.before_ms <= difference <= left.after_ms) == (-right.before_ms <= -difference <= right.after_ms)


def test_durations_are_timedeltas_or_milliseconds():
    assert ks.TimeWindows(size=timedelta(hours=1), grace=timedelta(minutes=10)) == ks.TimeWindows(
        size=3_600_000, grace=600_000
    )
    assert ks.JoinWindows.of(timedelta(seconds=1)).size_ms == 2_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ks.TimeWindows(size=0), "greater than zero"),
        (lambda: ks.TimeWindows(size=10, advance=0), "greater than zero"),
        (lambda: ks.TimeWindows(size=10, advance=11), "fall between"),
        (lambda: ks.TimeWindows(size=10, grace=-1), "not be negative"),
        (lambda: ks.SessionWindows(gap=0), "greater than zero"),
        (lambda: ks.SlidingWindows(difference=-1), "not be negative"),
        (lambda: ks.UnlimitedWindows(start=-1), "not be negative"),
        (lambda: ks.Materialized("x", store="disk"), '"rocksdb" or "memory"'),
    ],
)
def test_what_cannot_be_a_window(make, message):
    with pytest.raises(ValueError, match=message):
        make()

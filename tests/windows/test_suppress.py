"""Suppress over every kind of window and over plain tables, against a simulation of its buffer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.testing import TopologyTestDriver
from tests.dsl.driven import UNCACHED, run
from tests.windows.aggregating import ON_CLOSE, counts, few, shown, windowed, written

rows_ = st.lists(st.tuples(st.sampled_from("abc"), st.just("v"), st.integers(0, 60)), max_size=25)
KINDS = {
    "tumbling": lambda size, grace: ks.TimeWindows(size=size, grace=grace),
    "hopping": lambda size, grace: ks.TimeWindows(size=size, advance=(size + 1) // 2, grace=grace),
    "sliding": lambda size, grace: ks.SlidingWindows(difference=size, grace=grace),
    "session": lambda size, grace: ks.SessionWindows(gap=size, grace=grace),
}


def suppressed(updates, wait, time_of, place, *, max_records=None, drops_deletions=False):
    """What a buffer lets go: of each key its last update, in the order of the times of the first ones."""
    waiting, stream_time, out = {}, -1, []

    def emit(key):
        _, value, time = waiting.pop(key)
        if value is not None or not drops_deletions:
            out.append((key, value, time))

    for key, value, time in updates:
        stream_time = max(stream_time, time)
        first = waiting[key][0] if key in waiting else (time_of(key, time), place(key))
        waiting[key] = (first, value, time)
        for due in sorted(waiting, key=lambda k: waiting[k][0]):
            over = max_records is not None and len(waiting) > max_records
            if waiting[due][0][0] <= stream_time - wait or over:
                emit(due)
    return out


def end_of(key, time):
    return int(key.split("/")[1])


def windowed_bytes(is_session):
    """The order of serialized keys: key, then start, or end and start of a session."""

    def place(key):
        name, start, end = key[0], *map(int, key[2:].split("/"))
        return (name, end, start) if is_session else (name, start)

    return place


@pytest.mark.parametrize("kind", KINDS)
@few
@given(rows=rows_, size=st.integers(2, 10), grace=st.integers(0, 10))
def test_until_windows_close_it_lets_their_last_update_go(kind, rows, size, grace):
    windows = KINDS[kind](size, grace)
    builder, stream = windowed(windows)
    table = stream.count()
    written(table.suppress(ks.Suppressed.until_window_closes()))
    written_updates, updates_stream = windowed(windows)
    updates_stream.count().to_stream(shown, key=str).to("out")
    updates = run(written_updates, rows, UNCACHED, value=int)
    place = windowed_bytes(kind == "session")
    expected = suppressed(updates, windows.closes_after_ms, end_of, place, drops_deletions=True)
    assert without_end_of_input(builder, rows) == expected


def without_end_of_input(builder, rows, value=int):
    with TopologyTestDriver(builder.build(), {"application.id": "app", **UNCACHED}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for row in rows:
            topic.pipe_input(*row)
        return [
            (r.key, r.value, r.timestamp)
            for r in driver.create_output_topic("out", key=str, value=value).read_records()
        ]


@few
@given(rows_, st.integers(2, 10), st.integers(0, 10))
def test_every_time_window_is_let_go_once_with_its_final_count(rows, size, grace):
    windows = ks.TimeWindows(size=size, grace=grace)
    builder, stream = windowed(windows)
    written(stream.count().suppress(ks.Suppressed.until_window_closes()))
    finals = run(builder, rows, UNCACHED, value=int)
    assert sorted(finals) == sorted(counts(windows, rows, ON_CLOSE, config=None))


def counted(suppressed):
    builder = ks.StreamsBuilder()
    table = builder.stream("in", key=str, value=str).group_by_key().count()
    (table if suppressed is None else table.suppress(suppressed)).to_stream().to("out", value=int)
    return builder


@few
@given(rows_, st.integers(0, 20), st.none() | st.integers(1, 2))
def test_until_a_time_limit_it_lets_the_last_update_go_and_earlier_ones_when_it_is_full(rows, limit, max_records):
    builder = counted(ks.Suppressed.until_time_limit(limit, max_records=max_records))
    updates = without_end_of_input(counted(None), rows)
    expected = suppressed(updates, limit, lambda key, time: time, lambda key: key, max_records=max_records)
    assert without_end_of_input(builder, rows) == expected


def test_a_full_buffer_may_stop_the_application():
    builder = counted(ks.Suppressed.until_time_limit(100, max_records=1, when_full="shut_down"))
    with pytest.raises(ProcessingError, match=r"over its bound \(max_records=1"):
        run(builder, [("a", "v", 1), ("b", "v", 2)], value=int)


def test_what_is_bound_by_bytes_is_let_go_early():
    builder = counted(ks.Suppressed.until_time_limit(100, max_bytes=1))
    assert without_end_of_input(builder, [("a", "v", 1), ("b", "v", 2)]) == [("a", 1, 1), ("b", 1, 2)]


def test_at_the_end_of_input_everything_goes():
    builder, stream = windowed(ks.SessionWindows(gap=5))
    written(stream.count().suppress(ks.Suppressed.until_window_closes()))
    rows = [("k", "v", 0), ("k", "v", 3)]
    assert without_end_of_input(builder, rows) == []
    assert run(builder, rows, UNCACHED, value=int) == [("k@0/3", 2, 3)]


def test_it_finds_the_windows_of_cogrouped_streams():
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    table = grouped.cogroup(lambda key, value, n: n + 1).windowed_by(ks.TimeWindows(size=10)).aggregate(int, value=int)
    written(table.suppress(ks.Suppressed.until_window_closes()))
    assert without_end_of_input(builder, [("k", "v", 1), ("k", "v", 10)]) == [("k@0/10", 1, 1)]


def test_without_windows_there_is_nothing_that_closes():
    with pytest.raises(TopologyError, match="nothing before it has windows"):
        counted(ks.Suppressed.until_window_closes()).build()

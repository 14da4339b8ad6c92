"""Suppress: which update of a key comes out, when, and what happens when too many wait."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.testing import TopologyTestDriver

UNCACHED = {"statestore.cache.max.bytes": 0}


def suppressed(suppressed, records):
    """(key, value, timestamp) that comes out of a table of (key, value, timestamp) updates."""
    builder = ks.StreamsBuilder()
    builder.table("in", key=str, value=str).suppress(suppressed).to_stream().to("out")
    return run(builder, records)


def final_counts(windows, records):
    builder = ks.StreamsBuilder()
    counts = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count()
    final = counts.suppress(ks.Suppressed.until_window_closes()).to_stream(lambda w, count: w.key, key=str)
    final.map_values(str, value=str).to("out")
    return run(builder, records)


def run(builder, records):
    with TopologyTestDriver(builder.build(), UNCACHED, start_ms=0) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for record in records:
            topic.pipe_input(*record)
        out = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp) for record in out]


def test_the_last_update_comes_out_when_the_time_limit_after_the_first_is_over():
    limit = ks.Suppressed.until_time_limit(10)
    assert suppressed(limit, [("a", "1", 0), ("a", "2", 9)]) == []
    assert suppressed(limit, [("a", "1", 0), ("a", "2", 9), ("b", "x", 10)]) == [("a", "2", 9)]


def test_what_is_due_comes_out_in_order_of_time_and_key():
    records = [("b", "1", 0), ("a", "2", 0), ("c", "3", 1), ("z", "4", 50)]
    out = suppressed(ks.Suppressed.until_time_limit(10), records)
    assert [key for key, _, _ in out] == ["a", "b", "c"]


def test_deletions_pass_a_time_limit():
    records = [("a", "1", 0), ("a", None, 1), ("b", "x", 20)]
    assert suppressed(ks.Suppressed.until_time_limit(10), records) == [("a", None, 1)]


def test_a_full_buffer_lets_the_oldest_go():
    bounded = ks.Suppressed.until_time_limit(1_000, max_records=2)
    assert suppressed(bounded, [("a", "1", 0), ("b", "2", 1), ("c", "3", 2)]) == [("a", "1", 0)]


def test_a_full_buffer_may_be_an_error():
    bounded = ks.Suppressed.until_time_limit(1_000, max_records=1, when_full="shut_down")
    with pytest.raises(ProcessingError, match=r"KTABLE-SUPPRESS.*Raise the bound"):
        suppressed(bounded, [("a", "1", 0), ("b", "2", 1)])


def test_bytes_may_be_bounded():
    bounded = ks.Suppressed.until_time_limit(1_000, max_bytes=200)
    out = suppressed(bounded, [(f"key-{n}", "v" * 40, n) for n in range(10)])
    assert out
    assert len(out) < 10


def test_a_window_gives_one_final_result_when_it_and_its_grace_are_over():
    windows = ks.TimeWindows(size=10, grace=5)
    records = [("a", "x", 1), ("a", "x", 9), ("a", "x", 12), ("a", "x", 3), ("b", "x", 14)]
    assert final_counts(windows, records) == []
    assert final_counts(windows, [*records, ("b", "x", 15)]) == [("a", "3", 9)]


def test_windows_must_come_before():
    builder = ks.StreamsBuilder()
    builder.table("in", key=str, value=str).suppress(ks.Suppressed.until_window_closes())
    with pytest.raises(
        TopologyError, match=r"test_suppress.py:\d+ \(K.*\) waits until windows close, but nothing before it"
    ):
        builder.build()

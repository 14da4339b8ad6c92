"""Stream-stream joins: the examples of the catalogue, and a search over the whole input as their definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver

UNCACHED = {"statestore.cache.max.bytes": 0}


def joined(kind, windows, records, *, end=False):
    """(key, value, timestamp) that a join of `kind` puts out for (side, key, value, timestamp)."""
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(side, key=str, value=str) for side in ("left", "right"))
    getattr(left, kind)(right, lambda a, b: f"{a}+{b}", windows=windows).to("out", value=str)
    with TopologyTestDriver(builder.build(), UNCACHED, start_ms=0) as driver:
        topics = {side: driver.create_input_topic(side, key=str, value=str) for side in ("left", "right")}
        for side, key, value, timestamp in records:
            topics[side].pipe_input(key, value, timestamp)
        if end:
            driver.end_of_input()
        out = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp) for record in out]


L, R = "left", "right"


def test_both_ends_of_the_window_are_included():
    windows = ks.JoinWindows.of(10)
    assert joined("join", windows, [(L, "k", "a", 10), (R, "k", "b", 0), (R, "k", "c", 20), (R, "k", "d", 21)]) == [
        ("k", "a+b", 10),
        ("k", "a+c", 20),
    ]


def test_before_and_after_are_seen_from_the_left():
    windows = ks.JoinWindows(before=5, after=0)
    assert joined("join", windows, [(L, "k", "a", 10), (R, "k", "b", 5), (R, "k", "c", 11)]) == [("k", "a+b", 10)]


def test_an_inner_join_drops_null_keys_and_values():
    assert joined("join", ks.JoinWindows.of(10), [(L, None, "a", 0), (R, None, "b", 0), (L, "k", None, 0)]) == []


def test_a_left_row_without_partner_comes_out_when_its_window_and_grace_are_over():
    windows = ks.JoinWindows.of(10, grace=5)
    assert joined("left_join", windows, [(L, "k", "a", 0), (R, "x", "b", 15)]) == []
    assert joined("left_join", windows, [(L, "k", "a", 0), (R, "x", "b", 16)]) == [("k", "a+None", 0)]


def test_example_left_join_without_grace():
    records = [(L, "0", "A0", 0), (L, "1", "A1", 100), (R, "1", "a1", 110)]
    assert joined("left_join", ks.JoinWindows.of(100), records) == [("0", "A0+None", 0), ("1", "A1+a1", 110)]


def test_a_left_row_that_comes_late_and_alone_comes_out_at_once():
    records = [(R, "x", "b", 11), (L, "k", "a", 0)]
    assert joined("left_join", ks.JoinWindows.of(10, grace=100), records) == [("k", "a+None", 0)]


def test_an_outer_join_gives_null_keys_a_result_at_once_and_drops_null_values():
    records = [(L, None, "a", 0), (R, None, "b", 1), (L, "k", None, 2)]
    assert joined("outer_join", ks.JoinWindows.of(10), records) == [(None, "a+None", 0), (None, "None+b", 1)]


def test_expired_rows_are_in_order_of_time_right_before_left():
    records = [(L, "b", "2", 5), (L, "a", "1", 5), (R, "z", "3", 5), (R, "y", "4", 4), (L, "k", "5", 100)]
    assert joined("outer_join", ks.JoinWindows.of(1), records) == [
        ("y", "None+4", 4),
        ("z", "None+3", 5),
        ("a", "1+None", 5),
        ("b", "2+None", 5),
    ]


def test_rows_are_looked_at_again_only_when_the_last_one_read_is_over():
    """Kafka Streams takes the row it read last, here z, for the first that waits: so b waits longer than it must."""
    windows = ks.JoinWindows(before=60, after=0)
    records = [(R, "a", "1", 78), (R, "b", "2", 93), (L, "z", "3", 134), (L, "y", "4", 144)]
    first = [("a", "None+1", 78), ("z", "3+None", 134)]
    assert joined("outer_join", windows, records) == first
    assert joined("outer_join", windows, [*records, (R, "c", "5", 165)]) == first
    assert joined("outer_join", windows, [*records, (R, "c", "5", 195)])[2:] == [
        ("b", "None+2", 93),
        ("y", "4+None", 144),
    ]


def test_the_end_of_input_lets_out_rows_without_partner():
    records = [(L, "k", "a", 0), (R, "x", "b", 3)]
    assert joined("outer_join", ks.JoinWindows.of(10), records, end=True) == [("k", "a+None", 0), ("x", "None+b", 3)]


def test_a_join_without_windows_is_an_error():
    builder = ks.StreamsBuilder()
    left, right = builder.stream("left", key=str, value=str), builder.stream("right", key=str, value=str)
    with pytest.raises(TopologyError, match="needs windows="):
        left.join(right, lambda a, b: a)


rows = st.lists(st.tuples(st.sampled_from([L, R]), st.sampled_from("xy"), st.integers(0, 60)), max_size=25)
spans = st.tuples(st.integers(0, 12), st.integers(0, 12))


def named(found):
    return [(side, key, f"{side[0]}{number}", time) for number, (side, key, time) in enumerate(found)]


def pairs(windows, records):
    """The definition, where nothing expires: every pair whose times fit."""
    return sorted(
        (key, f"{a}+{b}", max(at, other))
        for side, key, a, at in records
        for other_side, other_key, b, other in records
        if (side, other_side) == (L, R)
        and key == other_key
        and at - windows.before_ms <= other <= at + windows.after_ms
    )


@settings(max_examples=60)
@given(rows, spans)
def test_an_inner_join_is_all_pairs_whose_times_fit(found, span):
    windows, records = ks.JoinWindows(before=span[0], after=span[1], grace=100), named(found)
    assert sorted(joined("join", windows, records)) == pairs(windows, records)


@settings(max_examples=60)
@given(rows, spans, st.sampled_from(["left_join", "outer_join"]))
def test_an_outer_join_gives_every_row_of_an_outer_side_at_least_one_result(found, span, kind):
    # A row that comes alone after its window is emitted at once, and may still meet a later partner: so all pairs are
    # there, every outer row is there, and a row without any partner exactly once.
    windows, records = ks.JoinWindows(before=span[0], after=span[1], grace=100), named(found)
    out = joined(kind, windows, records, end=True)
    full = [row for row in out if "None" not in row[1]]
    assert sorted(full) == pairs(windows, records)
    for side, _, value, _ in records:
        alone = f"{value}+None" if side == L else f"None+{value}"
        has_partner = any(value in row[1].split("+") for row in full)
        count = [row[1] for row in out].count(alone)
        if side == R and kind == "left_join":
            assert count == 0
        else:
            assert count <= 1
            assert count == 1 or has_partner


def simulated(kind, windows, records):
    """Record by record: meet what the other side keeps, wait where nothing is met, come out too late."""
    outer = {L: kind != "join", R: kind == "outer_join"}
    reach = {L: (windows.before_ms, windows.after_ms), R: (windows.after_ms, windows.before_ms)}
    wait = {side: after + windows.grace_ms for side, (_, after) in reach.items()}
    now, first, kept, latest, waiting, out = -1, NEVER, {L: [], R: []}, {L: -1, R: -1}, [], []
    for side, key, value, at in records:
        other, now, (before, after) = R if side == L else L, max(now, at), reach[side]
        if at == now and first + wait[side] < now:
            first, over = expired(sorted(waiting), wait, now)
            out += [alone(*row) for row in over]
            waiting = [row for row in waiting if row not in over]
        visible_from = max(at - before, latest[other] - windows.retention_ms + 1)
        partners = [row for row in kept[other] if row[2] == key and visible_from <= row[0] <= at + after]
        for row in sorted(partners, key=lambda row: row[0]):
            out.append((key, f"{value}+{row[4]}" if side == L else f"{row[4]}+{value}", max(at, row[0])))
        waiting = [row for row in waiting if row not in partners]
        row = at, side == L, key, len(kept[side]), value
        if not partners and outer[side]:
            if at + after < now:
                out.append(alone(*row))
            else:
                waiting.append(row)
                first = min(first, at)
        kept[side].append(row)
        latest[side] = max(latest[side], at)
    return out


NEVER = 10**9


def expired(waiting, wait, now):
    """Rows whose time is over, up to where both sides' is not, and the time of the row that was read last."""
    first, open_sides, over = NEVER, set(), []
    for row in waiting:
        if len(open_sides) == 2:
            break
        first, side = row[0], L if row[1] else R
        if first + wait[side] >= now:
            open_sides.add(side)
        else:
            over.append(row)
    return first, over


def alone(at, is_left, key, _, value):
    return key, f"{value}+None" if is_left else f"None+{value}", at


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([L, R]), st.sampled_from("xy"), st.integers(0, 60)), max_size=25),
    spans,
    st.integers(0, 40),
    st.sampled_from(["join", "left_join", "outer_join"]),
)
def test_every_record_has_the_results_of_the_definition(found, span, grace, kind):
    windows, records = ks.JoinWindows(before=span[0], after=span[1], grace=grace), named(found)
    assert joined(kind, windows, records) == simulated(kind, windows, records)


def test_rows_of_one_key_and_time_that_wait_come_out_as_soon_as_their_window_is_over():
    # Kafka Streams stops to read waiting rows at the second of them, and so looks again from their time on (recorded).
    builder = ks.StreamsBuilder()
    words, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    twice = words.merge(words.map_values(str.upper, value=str))
    windows = ks.JoinWindows(before=60, after=0, grace=50)
    twice.outer_join(right, lambda a, b: f"{a}+{b}", windows=windows).to("out", key=str, value=str)
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in ("left", "right")}
        out = driver.create_output_topic("out", key=str, value=str)
        for topic, key, timestamp in [("right", "b", 29), ("left", "l", 29), ("left", "a", 54), ("left", "z", 63)]:
            topics[topic].pipe_input(key, "x", timestamp=timestamp)
        topics["left"].pipe_input("p", "x", timestamp=87)
        assert [record.key for record in out.read_records()] == ["l", "l"]
        topics["left"].pipe_input("q", "x", timestamp=108)
        assert [record.key for record in out.read_records()] == ["a", "a"]

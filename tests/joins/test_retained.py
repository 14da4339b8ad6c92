"""Joins of two streams by retention: pairs whatever their times, and all pairs of the input as their definition."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver
from tests.support.examples import examples

UNCACHED = {"statestore.cache.max.bytes": 0}
L, R = "left", "right"


def sides(builder: ks.StreamsBuilder) -> tuple[ks.KStream[str, str], ks.KStream[str, str]]:
    return builder.stream(L, key=str, value=str), builder.stream(R, key=str, value=str)


def plus(left: Any, right: Any) -> str:
    return f"{left}+{right}"


def joined(kind, retain, records, *, end=False, store="rocksDB"):
    """(key, value, timestamp) of the join, and the number of dropped records, for (side, key, value, timestamp)."""
    builder = ks.StreamsBuilder({"default.dsl.store": store})
    left, right = sides(builder)
    getattr(left, kind)(right, plus, retain=retain).to("out", value=str)
    return driven(builder, records, end=end)


def driven(builder, records, *, end=False):
    with TopologyTestDriver(builder.build(), UNCACHED, start_ms=0) as driver:
        topics = {side: driver.create_input_topic(side, key=str, value=str) for side in (L, R)}
        for side, key, value, timestamp in records:
            topics[side].pipe_input(key, value, timestamp)
        if end:
            driver.end_of_input()
        out = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp) for record in out], sum(driver.dropped.values())


def results(kind, retain, records, *, end=False):
    return joined(kind, retain, records, end=end)[0]


def test_retained_for_ever_all_records_of_a_key_are_joined_whatever_their_times():
    years_ms = 10 * 365 * 24 * 3_600_000
    records = [(L, "k", "a", years_ms), (R, "k", "b", 0), (L, "k", "c", 5), (R, "other", "d", 5)]
    assert results("join", None, records) == [("k", "a+b", years_ms), ("k", "c+b", 5)]


def test_a_record_meets_its_partners_in_the_order_of_their_times_and_of_their_arrival():
    records = [(L, "k", "late", 9), (L, "k", "early", 3), (L, "k", "early too", 3), (R, "k", "x", 5)]
    assert results("join", None, records) == [("k", "early+x", 5), ("k", "early too+x", 5), ("k", "late+x", 9)]


def test_equal_records_are_different_records():
    assert results("join", None, [(L, "k", "a", 1), (L, "k", "a", 1), (R, "k", "b", 1)]) == 2 * [("k", "a+b", 1)]


def test_null_keys_and_values_are_dropped_and_counted():
    assert joined("join", None, [(L, None, "a", 0), (R, None, "b", 0), (L, "k", None, 0)]) == ([], 3)


def test_a_record_as_old_as_the_retention_is_still_joined_and_an_older_one_is_gone():
    records = [(L, "k", "old", 0), (L, "k", "at the bound", 1), (R, "k", "x", 11)]
    assert results("join", timedelta(milliseconds=10), records) == [("k", "at the bound+x", 11)]


def test_a_record_that_is_too_late_is_dropped_and_counted_and_never_joined():
    records = [(R, "k", "x", 11), (L, "k", "late", 0), (L, "k", "in time", 1), (R, "k", "y", 5)]
    assert joined("join", 10, records) == ([("k", "in time+x", 11), ("k", "in time+y", 5)], 1)


def test_records_of_either_side_and_any_key_advance_the_stream_time():
    records = [(L, "k", "a", 0), (L, "another key", "b", 50), (R, "k", "x", 45), (L, "k", "c", 45)]
    assert results("join", 10, records) == [("k", "c+x", 45)]


def test_a_left_record_without_a_match_is_emitted_once_when_its_retention_is_over():
    records = [(L, "k", "a", 0), (R, "k", "b", 5), (L, "alone", "c", 5), (R, "x", "d", 15)]
    assert results("left_join", 10, records) == [("k", "a+b", 5)]
    assert results("left_join", 10, [*records, (R, "x", "e", 16)]) == [("k", "a+b", 5), ("alone", "c+None", 5)]


def test_records_of_the_inner_side_without_a_match_are_not_emitted():
    assert results("left_join", 10, [(R, "k", "a", 0), (R, "k", "b", 100)], end=True) == []


def test_a_late_record_of_an_outer_side_is_emitted_at_once_without_a_partner():
    records = [(R, "k", "x", 11), (L, "k", "late", 0), (R, "k", "too late", 0)]
    assert joined("left_join", 10, records) == ([("k", "late+None", 0)], 1)
    assert joined("outer_join", 10, records) == ([("k", "late+None", 0), ("k", "None+too late", 0)], 0)


def test_a_record_of_an_outer_side_without_a_key_is_emitted_at_once():
    records = [(L, None, "a", 0), (R, None, "b", 1), (L, "k", None, 2)]
    assert joined("left_join", 10, records) == ([(None, "a+None", 0)], 2)
    assert joined("outer_join", 10, records) == ([(None, "a+None", 0), (None, "None+b", 1)], 1)


def test_expired_records_come_in_order_of_time_right_before_left():
    records = [(L, "b", "2", 5), (L, "a", "1", 5), (R, "z", "3", 5), (R, "y", "4", 4), (L, "k", "5", 100)]
    assert results("outer_join", 1, records) == [
        ("y", "None+4", 4),
        ("z", "None+3", 5),
        ("a", "1+None", 5),
        ("b", "2+None", 5),
    ]


def test_the_end_of_input_emits_records_without_a_match():
    records = [(L, "k", "a", 0), (R, "x", "b", 3)]
    assert results("outer_join", 10, records, end=True) == [("k", "a+None", 0), ("x", "None+b", 3)]


def test_a_stream_joined_with_itself_has_each_ordered_pair_of_its_records():
    builder = ks.StreamsBuilder({"topology.optimization": "all"})
    left, _ = sides(builder)
    left.join(left, plus, retain=None).to("out", value=str)
    pairs, _ = driven(builder, [(L, "k", "a", 0), (L, "k", "b", 1)])
    assert sorted(value for _, value, _ in pairs) == ["a+a", "a+b", "b+a", "b+b"]


def test_sides_whose_keys_changed_are_repartitioned_and_meet():
    builder = ks.StreamsBuilder()
    left, right = sides(builder)
    by_value = left.select_key(lambda key, value: value, key=str)
    by_value.join(right, plus, retain=None, name="pairs").to("out", value=str)
    assert "pairs-left-repartition" in str(builder.build().describe())
    assert driven(builder, [(L, "1", "k", 0), (R, "k", "x", 1)])[0] == [("k", "k+x", 1)]


def test_the_joiner_may_take_the_key_or_be_an_expression():
    for joiner, options in (
        (lambda key, left, right: f"{key}:{left}{right}", {"with_key": True}),
        (ks.key + ":" + ks.left.value + ks.right.value, {}),
    ):
        builder = ks.StreamsBuilder()
        left, right = sides(builder)
        left.join(right, joiner, retain=None, value=str, **options).to("out", value=str)
        assert driven(builder, [(L, "k", "a", 0), (R, "k", "b", 1)])[0] == [("k", "k:ab", 1)]


def test_processors_and_stores_have_the_names_that_the_user_chose():
    builder = ks.StreamsBuilder()
    left, right = sides(builder)
    left.left_join(right, plus, retain=10, name="pairs", store_name="records").to("out", value=str)
    topology = builder.build({"ensure.explicit.internal.resource.naming": True})
    assert sorted(topology.stores) == [f"records-{side}-join-store" for side in ("other", "shared", "this")]


def test_the_records_of_a_side_can_be_read_from_its_store():
    builder = ks.StreamsBuilder()
    left, right = sides(builder)
    left.join(right, plus, retain=10, store_name="records")
    with TopologyTestDriver(builder.build(), UNCACHED, start_ms=0) as driver:
        topic = driver.create_input_topic(L, key=str, value=str)
        for value, timestamp in (("a", 0), ("b", 7), ("c", 12)):
            topic.pipe_input("k", value, timestamp)
        store = driver.get_window_store("records-this-join-store")
        assert [(start_ms, value) for start_ms, value in store.fetch("k", 0, 100)] == [(7, "b"), (12, "c")]


def test_a_join_says_in_one_way_which_records_meet():
    builder = ks.StreamsBuilder()
    left, right = sides(builder)
    windows = ks.JoinWindows.of(10)
    with pytest.raises(TopologyError, match=r"needs windows=JoinWindows.of\(...\).* or retain=.*None: for ever"):
        left.join(right, plus)
    with pytest.raises(TopologyError, match="has windows= and retain=: leave retain= out"):
        left.join(right, plus, windows=windows, retain=None)
    with pytest.raises(TopologyError, match="cannot retain records for a negative time: retain=-1"):
        left.join(right, plus, retain=-1)


@pytest.mark.parametrize("kind", ["left_join", "outer_join"])
def test_records_retained_for_ever_are_never_without_a_match_for_good(kind):
    left, right = sides(ks.StreamsBuilder())
    with pytest.raises(TopologyError, match="retain=None retains them for ever: give retain= a duration, use join"):
        getattr(left, kind)(right, plus, retain=None)


def test_a_join_with_a_table_takes_no_retention():
    builder = ks.StreamsBuilder()
    left, _ = sides(builder)
    table = builder.table("table", key=str, value=str)
    with pytest.raises(TopologyError, match="retain= belongs to a join with a KStream: leave it out"):
        left.join(table, plus, retain=None)


rows = st.lists(st.tuples(st.sampled_from([L, R]), st.sampled_from("xy"), st.integers(0, 40)), max_size=30)
retentions = st.none() | st.integers(0, 30)


def named(drawn):
    return [(side, key, f"{side[0]}{number}", time) for number, (side, key, time) in enumerate(drawn)]


class Model:
    """The join in plain Python: a list of all records, and the stream time."""

    def __init__(self, retain: int | None, outer_sides: tuple[str, ...] = ()) -> None:
        self.retain = retain
        self.outer_sides = outer_sides
        self.stream_time = -1
        self.records: list[tuple[str, str, str, int]] = []
        self.met: set[str] = set()
        self.out: list[tuple[str, str, int]] = []
        self.dropped = 0

    def first_retained(self) -> int:
        return 0 if self.retain is None else self.stream_time - self.retain

    def add(self, side: str, key: str, value: str, time: int) -> None:
        self.stream_time = max(self.stream_time, time)
        if time >= self.first_retained():
            for other_side, other_key, other, other_time in self.records:
                if other_side != side and other_key == key and other_time >= self.first_retained():
                    pair = (value, other) if side == L else (other, value)
                    self.out.append((key, plus(*pair), max(time, other_time)))
                    self.met |= {value, other}
            self.records.append((side, key, value, time))
        elif side in self.outer_sides:
            self.out.append(alone(side, key, value, time))
        else:
            self.dropped += 1

    def closed(self, *, end: bool) -> list[tuple[str, str, int]]:
        unmatched = [record for record in self.records if record[0] in self.outer_sides and record[2] not in self.met]
        return [alone(*record) for record in unmatched if end or record[3] < self.first_retained()]


def alone(side: str, key: str, value: str, time: int) -> tuple[str, str, int]:
    return key, plus(value, None) if side == L else plus(None, value), time


@settings(max_examples=examples(100))
@given(rows, retentions)
def test_an_inner_join_is_all_pairs_that_were_retained_when_the_later_record_came(drawn, retain):
    model = Model(retain)
    for record in named(drawn):
        model.add(*record)
    out, dropped = joined("join", retain, named(drawn), store="in_memory")
    assert (sorted(out), dropped) == (sorted(model.out), model.dropped)


@settings(max_examples=examples(60))
@given(rows, st.randoms(use_true_random=False))
def test_retained_for_ever_the_order_of_arrival_does_not_matter(drawn, random):
    records = named(drawn)
    shuffled = random.sample(records, len(records))
    out, _ = joined("join", None, records, store="in_memory")
    assert sorted(joined("join", None, shuffled, store="in_memory")[0]) == sorted(out)


@settings(max_examples=examples(100))
@given(rows, st.integers(0, 30), st.sampled_from(["left_join", "outer_join"]), st.booleans())
def test_each_record_of_an_outer_side_has_its_pairs_or_one_result_without_a_partner(drawn, retain, kind, end):
    model = Model(retain, (L,) if kind == "left_join" else (L, R))
    for record in named(drawn):
        model.add(*record)
    out, dropped = joined(kind, retain, named(drawn), end=end, store="in_memory")
    assert (sorted(out), dropped) == (sorted([*model.out, *model.closed(end=end)]), model.dropped)

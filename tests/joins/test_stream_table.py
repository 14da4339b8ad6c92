"""Joins of a stream with a table or global table: what a record finds, and when it has a result."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver


def looked_up(kind, *records, materialized=None, view=lambda table: table):
    """(key, value, timestamp) of a join of `in` with the table of `rows`, for (topic, key, value, timestamp)."""
    builder = ks.StreamsBuilder()
    table = view(builder.table("rows", key=str, value=str, materialized=materialized))
    stream = builder.stream("in", key=str, value=str)
    getattr(stream, kind)(table, lambda a, b: f"{a}+{b}").to("out", value=str)
    return run(builder, records)


def looked_up_globally(kind, *records):
    builder = ks.StreamsBuilder()
    table = builder.global_table("rows", key=str, value=str)
    stream = builder.stream("in", key=str, value=str)
    getattr(stream, kind)(table, lambda a, b: f"{a}+{b}", key_selector=lambda key, value: value).to("out", value=str)
    return run(builder, records)


def run(builder, records):
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in ("rows", "in")}
        for topic, *record in records:
            topics[topic].pipe_input(*record)
        out = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp) for record in out]


def test_a_record_finds_the_row_as_it_is_now_and_updates_emit_nothing():
    records = [("rows", "k", "1", 0), ("in", "k", "a", 5), ("rows", "k", "2", 9), ("in", "k", "b", 1)]
    assert looked_up("join", *records) == [("k", "a+1", 5), ("k", "b+2", 1)]


def test_an_inner_join_leaves_out_what_finds_nothing_a_left_join_does_not():
    records = [("in", "k", "a", 0), ("rows", "k", "1", 0), ("rows", "k", None, 1), ("in", "k", "b", 2)]
    assert looked_up("join", *records) == []
    assert looked_up("left_join", *records) == [("k", "a+None", 0), ("k", "b+None", 2)]


def test_null_keys_have_a_result_in_a_left_join_alone_and_null_values_never():
    records = [("in", None, "a", 0), ("in", "k", None, 0)]
    assert looked_up("join", *records) == []
    assert looked_up("left_join", *records) == [(None, "a+None", 0)]


def test_views_are_looked_up_through_their_parents():
    records = [("rows", "k", "1", 0), ("rows", "x", "", 0), ("in", "k", "a", 5), ("in", "x", "b", 5)]
    longer = looked_up("join", *records, view=lambda t: t.filter(lambda k, v: v != "").map_values(lambda v: v + "!"))
    assert longer == [("k", "a+1!", 5)]


@pytest.mark.parametrize("view", [lambda table: table, lambda table: table.map_values(lambda v: v)])
def test_a_versioned_table_is_looked_up_as_it_was_at_the_time_of_the_record(view):
    versioned = ks.Materialized("versions", history_retention=1_000)
    records = [("rows", "k", "1", 0), ("rows", "k", "2", 10), ("in", "k", "a", 9), ("in", "k", "b", 10)]
    assert looked_up("join", *records, materialized=versioned, view=view) == [("k", "a+1", 9), ("k", "b+2", 10)]


def test_a_global_table_is_looked_up_by_any_key_and_the_record_keeps_its_own():
    records = [("rows", "x", "1", 0), ("in", "k", "x", 5), ("in", "k", "y", 6)]
    assert looked_up_globally("join", *records) == [("k", "x+1", 5)]
    assert looked_up_globally("left_join", *records) == [("k", "x+1", 5), ("k", "y+None", 6)]


MAPPED = {
    "join": ["k|a|a1|A", None, "None|a|a2|A", None, None, None, None],
    "left_join": [
        "k|a|a1|A", "k|b|b1|None", "None|a|a2|A", "None|b|b2|None", "k|None|none|None", "None|None|none|None", None,
    ],
}  # fmt: skip
"""What Kafka Streams 4.4.0 gave for the records below, by `ValueJoinerWithStreamAndMappedKey`."""


@pytest.mark.parametrize("kind", MAPPED)
def test_a_joiner_of_a_global_table_takes_the_mapped_key(kind):
    builder = ks.StreamsBuilder()
    table = builder.global_table("rows", key=str, value=str)
    stream = builder.stream("in", key=str, value=str)
    joined = getattr(stream, kind)(
        table,
        lambda key, mapped_key, left, right: f"{key}|{mapped_key}|{left}|{right}",
        key_selector=lambda key, value: None if value in (None, "none") else value[0],
        with_mapped_key=True,
    )
    joined.to("out", value=str)
    records = [("k", "a1"), ("k", "b1"), (None, "a2"), (None, "b2"), ("k", "none"), (None, "none"), ("k", None)]
    rows = run(builder, [("rows", "a", "A", 0), *(("in", *record, at) for at, record in enumerate(records))])
    assert rows == [(records[at][0], value, at) for at, value in enumerate(MAPPED[kind]) if value is not None]


@pytest.mark.parametrize("joiner", [ks.right.value, ks.col("x")])
def test_an_expression_takes_no_mapped_key(joiner):
    builder = ks.StreamsBuilder()
    table = builder.global_table("rows", key=str, value=str)
    stream = builder.stream("in", key=str, value=str)
    with pytest.raises(TopologyError, match="leave with_mapped_key=True out"):
        stream.join(table, joiner, key_selector=lambda key, value: value, with_mapped_key=True)


def test_only_a_join_with_a_global_table_has_a_mapped_key():
    builder = ks.StreamsBuilder()
    table = builder.table("rows", key=str, value=str)
    with pytest.raises(TopologyError, match=r"with_mapped_key= belongs to a join with a GlobalKTable"):
        builder.stream("in", key=str, value=str).join(table, lambda a, b, c, d: a, with_mapped_key=True)


@pytest.mark.parametrize(("joiner", "cure"), [
    (lambda left, right: left, "let it take 4 arguments"),
    (lambda key, left, right: left, "let it take 4 arguments"),
])  # fmt: skip
def test_a_joiner_that_does_not_take_the_mapped_key_is_refused(joiner, cure):
    builder = ks.StreamsBuilder()
    table = builder.global_table("rows", key=str, value=str)
    stream = builder.stream("in", key=str, value=str)
    with pytest.raises(TopologyError, match=cure):
        stream.left_join(table, joiner, key_selector=lambda key, value: value, with_mapped_key=True)
    with pytest.raises(TopologyError, match="give with_mapped_key=True"):
        stream.join(table, lambda a, b, c, d: a, key_selector=lambda key, value: value)


def test_a_global_table_needs_a_key_selector():
    builder = ks.StreamsBuilder()
    table = builder.global_table("rows", key=str, value=str)
    with pytest.raises(TopologyError, match="needs key_selector="):
        builder.stream("in", key=str, value=str).join(table, lambda a, b: a)


def test_a_stream_whose_key_was_changed_is_repartitioned_to_its_table():
    builder = ks.StreamsBuilder()
    table = builder.table("rows", key=str, value=str)
    stream = builder.stream("in", key=str, value=str).select_key(lambda k, v: v, key=str)
    stream.join(table, lambda a, b: b, name="enrich").to("out", value=str)
    topology = builder.build()
    assert [topic.name for topic in topology.repartition_topics] == ["enrich-repartition"]
    assert set(topology.copartition_groups) == {("enrich-repartition", "rows")}
    assert run(builder, [("rows", "x", "1", 0), ("in", "k", "x", 5)]) == [("x", "1", 5)]


def joined_patiently(kind, grace, *records, end=False, config=None):
    """A join of `in` with the versioned table `rows`; what comes out, with headers."""
    builder = ks.StreamsBuilder()
    table = builder.table("rows", key=str, value=str, materialized=ks.Materialized("rows", history_retention=10_000))
    stream = builder.stream("in", key=str, value=str)
    getattr(stream, kind)(table, concat, grace=grace, name="enrich").to("out", value=str)
    with TopologyTestDriver(builder.build(), config, start_ms=0) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in ("rows", "in")}
        for topic, *record in records:
            topics[topic].pipe_input(*record)
        if end:
            driver.end_of_input()
        out = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp, *record.headers) for record in out]


def concat(a, b):
    return f"{a}+{b}"


def test_records_wait_for_versions_that_come_late():
    records = [("rows", "k", "1", 0), ("in", "k", "a", 10), ("rows", "k", "2", 8), ("in", "x", "b", 15)]
    assert joined_patiently("join", 5, *records) == [("k", "a+2", 10)]


def test_waiting_records_leave_in_order_of_time_with_their_headers():
    h1, h2 = ("h", b"1"), ("h", b"2")
    records = [("in", "b", "1", 9, [h1]), ("in", "a", "2", 9, [h2]), ("in", "c", "3", 8), ("in", "x", "4", 20)]
    assert joined_patiently("left_join", 5, *records) == [
        ("c", "3+None", 8),
        ("a", "2+None", 9, h2),
        ("b", "1+None", 9, h1),
    ]


def test_a_record_that_comes_later_than_the_grace_is_joined_at_once():
    records = [("in", "k", "a", 20), ("in", "k", "b", 14)]
    assert joined_patiently("left_join", 5, *records) == [("k", "b+None", 14)]


def test_a_null_key_meets_nothing_and_need_not_wait():
    assert joined_patiently("left_join", 5, ("in", None, "a", 3)) == [(None, "a+None", 3)]
    assert joined_patiently("join", 5, ("in", None, "a", 3), end=True) == []


def test_grace_needs_a_table_with_enough_history():
    builder = ks.StreamsBuilder()
    stream, plain = builder.stream("in", key=str, value=str), builder.table("rows", key=str, value=str)
    stream.join(plain, concat, grace=5).to("out", value=str)
    with pytest.raises(TopologyError, match="keeps no history"):
        builder.build()
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    table = builder.table("rows", key=str, value=str, materialized=ks.Materialized("rows", history_retention=4))
    stream.join(table, concat, grace=5).to("out", value=str)
    with pytest.raises(TopologyError, match="which reaches back 4 ms"):
        builder.build()


NOW, AS_OF = "as it is now", "as it was"
events = st.lists(
    st.tuples(
        st.sampled_from(("rows", "in")), st.sampled_from("ab"), st.none() | st.sampled_from("xyz"), st.integers(0, 30)
    ),
    max_size=25,
)


def simulated(kind, records, lookup=NOW, grace=None):
    """Each record looks its key up, now or as of its time; with grace it first waits, in order of time and key."""
    table, waiting, out, stream_time = {}, [], [], -1

    def join(at, key, value):
        versions = table.get(key, {})
        holds = [time for time in versions if lookup == NOW or time <= at]
        found = versions[max(holds) if lookup == AS_OF else holds[-1]] if holds else None
        if found is not None or kind == "left_join":
            out.append((key, concat(value, found), at))

    for topic, key, value, at in records:
        if topic == "rows":
            versions = table.setdefault(key, {})
            versions.pop(at, None)
            versions[at] = value
        elif value is not None and (grace is None or at < stream_time - grace):
            join(at, key, value)
        elif value is not None:
            stream_time = max(stream_time, at)
            waiting.append((at, key, value))
            waiting.sort(key=lambda row: row[:2])
        while waiting and waiting[0][0] <= stream_time - grace:
            join(*waiting.pop(0))
    return out


KINDS = st.sampled_from(("join", "left_join"))


@settings(max_examples=50, deadline=None)
@given(KINDS, events)
def test_every_record_finds_the_row_of_the_definition(kind, records):
    assert looked_up(kind, *records) == simulated(kind, records)


@settings(max_examples=50, deadline=None)
@given(KINDS, events)
def test_every_record_finds_the_version_of_the_definition(kind, records):
    versions = ks.Materialized("versions", history_retention=10_000)
    assert looked_up(kind, *records, materialized=versions) == simulated(kind, records, AS_OF)


@settings(max_examples=60, deadline=None)
@given(KINDS, events, st.integers(0, 12))
def test_every_record_waits_for_the_version_of_the_definition(kind, records, grace):
    assert joined_patiently(kind, grace, *records) == simulated(kind, records, AS_OF, grace)


@settings(max_examples=40, deadline=None)
@given(KINDS, events)
def test_every_record_finds_the_global_row_of_the_definition(kind, records):
    by_value = [(topic, value if topic == "in" else key, value, at) for topic, key, value, at in records]
    found = simulated(kind, [row for row in by_value if row[0] == "rows" or row[2] is not None])
    assert [row[1:] for row in looked_up_globally(kind, *records)] == [row[1:] for row in found]


@settings(max_examples=30, deadline=None)
@given(KINDS, events, st.integers(0, 12))
def test_at_the_end_of_input_nothing_waits_any_more(kind, records, grace):
    rows_first = sorted(records, key=lambda row: row[0] != "rows")
    out = joined_patiently(kind, grace, *rows_first, end=True)
    assert sorted(out) == sorted(simulated(kind, rows_first, AS_OF))

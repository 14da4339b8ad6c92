"""Joins of a stream with a table or global table: what a record finds, and when it has a result."""

from __future__ import annotations

import pytest

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

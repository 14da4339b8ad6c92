"""Joins of two tables, against the definition: each update joins the row with the other table as it is now."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from tests.joins.driven import CACHED, UNCACHED, run, table_of

L, R = "left", "right"
OTHER = {L: R, R: L}
KINDS = ("join", "left_join", "outer_join")


def concat(a, b):
    return f"{a}+{b}"


def joined(kind, records, config=UNCACHED, materialized=None, view=lambda table: table, **history):
    builder = ks.StreamsBuilder()
    left, right = (
        builder.table(side, key=str, value=str, materialized=ks.Materialized(f"{side}-store", **history))
        for side in (L, R)
    )
    table = getattr(left, kind)(right, concat, key=str, value=str, materialized=materialized)
    view(table).to_stream().to("out", key=str, value=str)
    return run(builder, records, config)


def simulated(kind, records):
    """Who has no partner is joined with None where its side is outer; a deletion is told where a row may have been."""
    tables, out = {L: {}, R: {}}, []
    outer = {L: kind != "join", R: kind == "outer_join"}
    for side, key, value, timestamp in records:
        own, partner = tables[side], tables[OTHER[side]].get(key)
        before = own.pop(key, None)
        if value is not None:
            own[key] = (value, timestamp)
        if partner is None and (not outer[side] or (value is None and before is None)):
            continue
        other, at = partner or (None, timestamp)
        alone = value is None and not (outer[OTHER[side]] and partner)
        out.append((key, None if alone else both(side, value, other), max(at, timestamp)))
    return out


def both(side, value, other):
    return concat(value, other) if side == L else concat(other, value)


def recomputed(kind, records):
    """The join of what remains of both tables."""
    left, right = (table_of([record[1:] for record in records if record[0] == side]) for side in (L, R))
    keys = {"join": left.keys() & right.keys(), "left_join": left.keys(), "outer_join": left.keys() | right.keys()}
    return {key: concat(left.get(key), right.get(key)) for key in keys[kind]}


updates = st.lists(
    st.tuples(st.sampled_from((L, R)), st.sampled_from("ab"), st.none() | st.sampled_from("xyz"), st.integers(0, 20)),
    max_size=20,
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KINDS), updates)
def test_every_update_is_that_of_the_definition(kind, records):
    assert joined(kind, records) == simulated(kind, records)
    assert joined(kind, records, materialized="rows") == simulated(kind, records)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KINDS), updates, st.sampled_from((CACHED, UNCACHED)), st.sampled_from((None, "rows")))
def test_what_remains_is_the_join_of_what_remains(kind, records, config, materialized):
    assert table_of(joined(kind, records, config, materialized)) == recomputed(kind, records)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(KINDS), updates, st.sampled_from((None, "rows")))
def test_a_filter_of_a_join_is_told_what_was_there_before(kind, records, materialized):
    def view(table):
        return table.filter(lambda key, value: "x" in value)

    rows = joined(kind, records, materialized=materialized, view=view)
    assert table_of(rows) == {k: v for k, v in recomputed(kind, records).items() if "x" in v}
    known = set()
    for key, value, _ in rows:  # no deletion of what never came
        assert value is not None or key in known
        known.add(key)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(KINDS), updates)
def test_of_versioned_tables_the_latest_by_time_are_joined(kind, records):
    latest = {}
    in_order = []
    for side, key, value, timestamp in records:
        if latest.get((side, key), -1) <= timestamp:
            latest[side, key] = timestamp
            in_order.append((side, key, value, timestamp))
    assert joined(kind, records, history_retention=1_000) == simulated(kind, in_order)


def test_unnamed_sources_are_kept_because_the_join_looks_into_them():
    builder = ks.StreamsBuilder()
    left, right = (builder.table(side, key=str, value=str) for side in (L, R))
    left.join(right, concat).to_stream().to("out", value=str)
    topology = builder.build()
    assert list(topology.stores) == ["left-STATE-STORE-0000000000", "right-STATE-STORE-0000000003"]
    assert set(topology.copartition_groups) == {(L, R)}


def test_declared_types_alone_give_the_result_a_store_as_in_kafka_streams():
    builder = ks.StreamsBuilder()
    left, right = (builder.table(side, key=str, value=str, materialized=f"{side}-store") for side in (L, R))
    table = left.join(right, concat, value=str, name="both")
    assert table.queryable_store_name == "KTABLE-MERGE-STATE-STORE-0000000004"
    assert left.join(right, concat).queryable_store_name is None
    assert "KTABLE-MERGE-STATE-STORE-0000000004" in builder.build().stores


def test_a_join_may_be_read_by_a_stream_and_by_another_join():
    builder = ks.StreamsBuilder()
    left, right, third = (builder.table(side, key=str, value=str) for side in (L, R, "third"))
    chain = left.join(right, concat).left_join(third, concat)
    stream = builder.stream("in", key=str, value=str)
    stream.join(chain, concat).to("out", value=str)
    records = [(L, "a", "1", 5), (R, "a", "2", 3), ("in", "a", "s", 9), ("third", "a", "3", 0), ("in", "a", "t", 1)]
    assert run(builder, records) == [("a", "s+1+2+None", 9), ("a", "t+1+2+3", 1)]


def test_an_expression_may_join():
    builder = ks.StreamsBuilder()
    left, right = (builder.table(side, key=str, value=str) for side in (L, R))
    left.join(right, ks.left.value + ks.right.value).to_stream().to("out")
    assert run(builder, [(L, "a", "1", 0), (R, "a", "2", 1)]) == [("a", "12", 1)]


def test_the_result_of_a_kept_join_needs_a_known_type():
    builder = ks.StreamsBuilder()
    left, right = (builder.table(side, key=str, value=str) for side in (L, R))
    left.join(right, lambda a, b: a, materialized="rows")
    with pytest.raises(TopologyError, match="write value=<type> there"):
        builder.build()


def test_a_table_may_be_joined_with_itself():
    builder = ks.StreamsBuilder()
    table = builder.table(L, key=str, value=str)
    table.outer_join(table, concat).to_stream().to("out", value=str)
    assert table_of(run(builder, [(L, "a", "1", 0), (L, "a", "2", 1), (L, "b", "3", 2), (L, "b", None, 3)])) == {
        "a": "2+2"
    }


def test_tables_say_by_which_name_they_can_be_asked():
    builder = ks.StreamsBuilder()
    table = builder.table(L, key=str, value=str, materialized="rows")
    assert table.queryable_store_name == "rows"
    assert table.filter(lambda key, value: True).queryable_store_name is None
    assert table.map_values(str.upper, value=str, materialized="loud").queryable_store_name == "loud"
    assert builder.table(R, key=str, value=str).queryable_store_name is None
    assert builder.global_table("g", key=str, value=str, materialized="all").queryable_store_name == "all"
    assert builder.global_table("h", key=str, value=str).queryable_store_name is None

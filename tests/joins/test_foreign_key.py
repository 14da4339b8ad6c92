"""Joins by foreign key, against the definition: step by step, and by what remains of both tables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import KStreamsError, TopologyError
from kstreams.testing import TopologyTestDriver
from tests.joins.driven import CACHED, UNCACHED, run, table_of

L, R = "left", "right"


def concat(a, b):
    return f"{a}+{b}"


def before_dash(value):
    return value.split("-")[0] if "-" in value else None


def joined(kind, records, config=UNCACHED, history=None, **options):
    builder = ks.StreamsBuilder()
    left, right = (
        builder.table(
            side, key=str, value=str, materialized=ks.Materialized(f"{side}-store", history_retention=history)
        )
        for side in (L, R)
    )
    options = {"foreign_key": before_dash, **options}
    table = getattr(left, kind)(right, concat, value=str, **options)
    table.to_stream().to("out", key=str, value=str)
    return run(builder, records, config)


def recomputed(kind, records):
    """Each left row with the right row that its value names."""
    left, right = (table_of([record[1:] for record in records if record[0] == side]) for side in (L, R))
    partners = {key: right.get(before_dash(value)) for key, value in left.items()}
    return {k: concat(v, partners[k]) for k, v in left.items() if kind == "left_join" or partners[k] is not None}


def simulated(kind, records):
    """Right rows tell all left rows that name them; left rows ask for what they name now, and take back what was."""
    left, right, out = {}, {}, []
    for side, key, value, at in records:
        table = left if side == L else right
        before, _ = table.pop(key, (None, 0))
        if value is not None:
            table[key] = (value, at)
        if side == R:
            named = sorted((k, v) for k, (v, _) in left.items() if before_dash(v) == key)
            out += [(k, None if value is None and kind == "join" else concat(v, value), at) for k, v in named]
            continue
        old, new = (None if v is None else before_dash(v) for v in (before, value))
        asked = old if new is None and kind == "join" else new
        row, row_at = right.get(asked, (None, 0))
        none_before = before is None if kind == "left_join" else old is None or old == new
        matched = value is not None and (kind == "left_join" or (new is not None and row is not None))
        if matched or not none_before:
            out.append((key, concat(value, row) if matched else None, max(at, row_at)))
    return out


keys = {L: st.sampled_from("ab"), R: st.sampled_from("xy")}
values = {L: st.sampled_from(("x-1", "x-2", "y-1", "none")), R: st.sampled_from(("1", "2"))}
updates = st.lists(
    st.sampled_from((L, R)).flatmap(
        lambda side: st.tuples(st.just(side), keys[side], st.none() | values[side], st.integers(0, 20))
    ),
    max_size=20,
)
KINDS = st.sampled_from(("join", "left_join"))


@settings(max_examples=60, deadline=None)
@given(KINDS, updates)
def test_every_update_is_that_of_the_definition(kind, records):
    assert joined(kind, records) == simulated(kind, records)


@settings(max_examples=40, deadline=None)
@given(KINDS, updates, st.sampled_from((CACHED, UNCACHED)), st.sampled_from((None, "rows")))
def test_what_remains_is_the_join_of_what_remains(kind, records, config, materialized):
    assert table_of(joined(kind, records, config, materialized=materialized)) == recomputed(kind, records)


@settings(max_examples=30, deadline=None)
@given(KINDS, updates)
def test_of_versioned_tables_the_latest_by_time_are_joined(kind, records):
    latest, in_order = {}, []
    for side, key, value, timestamp in records:
        if latest.get((side, key), -1) <= timestamp:
            latest[side, key] = timestamp
            in_order.append((side, key, value, timestamp))
    assert table_of(joined(kind, records, history=1_000)) == recomputed(kind, in_order)


def test_the_foreign_key_may_depend_on_the_key():
    records = [(R, "ab", "row", 0), (L, "a", "b", 1)]
    assert joined("join", records, foreign_key=lambda key, value: key + value, with_key=True) == [("a", "b+row", 1)]


def test_the_foreign_key_may_be_an_expression():
    assert joined("join", [(R, "b", "row", 5), (L, "a", "b", 1)], foreign_key=ks.value) == [("a", "b+row", 5)]


def test_headers_of_what_caused_an_answer_go_with_it():
    builder = ks.StreamsBuilder()
    left, right = (builder.table(side, key=str, value=str) for side in (L, R))
    left.join(right, concat, foreign_key=before_dash, value=str).to_stream().to("out")
    with TopologyTestDriver(builder.build(), UNCACHED, start_ms=0) as driver:
        pipe = {side: driver.create_input_topic(side, key=str, value=str).pipe_input for side in (L, R)}
        pipe[L]("a", "x-1", 0, headers=[("from", b"left")])
        pipe[R]("x", "row", 1, headers=[("from", b"right")])
        (record,) = driver.create_output_topic("out", key=str, value=str).read_records()
        assert list(record.headers) == [("from", b"right")]


def test_an_answer_to_a_row_that_has_changed_since_is_discarded():
    """Both updates of the left row are taken before the first answer comes: only the last one has a result."""
    records = [(R, "x", "1", 0), (R, "y", "2", 0), (L, "a", "x-1", 1), (L, "a", "y-1", 2)]
    builder = ks.StreamsBuilder()
    left, right = (builder.table(side, key=str, value=str) for side in (L, R))
    twice = left.to_stream().flat_map_values(lambda value: [value, value.replace("x", "y")], value=str).to_table()
    twice.join(right, concat, foreign_key=before_dash, value=str).to_stream().to("out")
    assert run(builder, records[:3]) == [("a", "y-1+2", 1)]


def test_every_name_can_be_given():
    builder = ks.StreamsBuilder()
    left, right = (builder.table(side, key=str, value=str, materialized=f"{side}-store") for side in (L, R))
    left.join(right, concat, foreign_key=before_dash, name="enrich", materialized="enriched", value=str)
    topology = builder.build()
    assert [topic.name for topic in topology.repartition_topics] == [
        "enrich-subscription-registration-topic",
        "enrich-subscription-response-topic",
    ]
    assert set(topology.stores) == {"left-store", "right-store", "enrich-subscription-store", "enriched"}
    assert set(topology.copartition_groups) == {
        (R, "enrich-subscription-registration-topic"),
        (L, "enrich-subscription-response-topic"),
    }


def test_where_names_must_be_given_it_says_which_are_missing():
    builder = ks.StreamsBuilder({"ensure.explicit.internal.resource.naming": True})
    left, right = (builder.table(side, key=str, value=str, materialized=f"{side}-store") for side in (L, R))
    left.join(right, concat, foreign_key=before_dash, value=str)
    with pytest.raises(TopologyError, match=r"SUBSCRIPTION-STATE-STORE-.*: give name=, and materialized="):
        builder.build()
    builder = ks.StreamsBuilder({"ensure.explicit.internal.resource.naming": True})
    left, right = (builder.table(side, key=str, value=str, materialized=f"{side}-store") for side in (L, R))
    left.join(right, concat, foreign_key=before_dash, name="enrich", value=str)
    builder.build()


def test_its_result_is_kept_only_if_somebody_looks_into_it():
    builder = ks.StreamsBuilder()
    left, right, third = (builder.table(side, key=str, value=str) for side in (L, R, "third"))
    result = left.join(right, concat, foreign_key=before_dash, value=str)
    assert not any("OUTPUT" in store for store in builder.build().stores)
    result.join(third, concat, value=str).to_stream().to("out", key=str)
    assert any("OUTPUT" in store for store in builder.build().stores)
    records = [(R, "x", "1", 0), ("third", "a", "3", 0), (L, "a", "x-1", 1)]
    assert run(builder, records) == [("a", "x-1+1+3", 1)]


def test_a_table_may_be_joined_with_itself():
    builder = ks.StreamsBuilder()
    people = builder.table(L, key=str, value=str)
    people.left_join(people, concat, foreign_key=before_dash, value=str).to_stream().to("out")
    assert table_of(run(builder, [(L, "x", "none", 0), (L, "a", "x-1", 1), (L, "x", "y-2", 2)])) == {
        "x": "y-2+None",
        "a": "x-1+y-2",
    }


def test_a_partitioner_must_choose_one_partition():
    with pytest.raises(KStreamsError, match="must give one partition"):
        joined("join", [(L, "a", "x-1", 1)], other_partitioner=lambda topic, key, value, count: [0])


def test_options_of_a_foreign_key_need_one():
    with pytest.raises(TopologyError, match="give it foreign_key="):
        joined("join", [], foreign_key=None, partitioner=lambda topic, key, value, count: 0)


CHANGES_OF_ONE_TABLE = [
    ("a", "a1"),
    ("a", "a2"),
    ("b", "a3"),
    ("a", None),
    ("a", "b1"),
    ("b", None),
    ("a", None),
    ("c", "c1"),
    ("c", None),
    ("c", "d1"),
    ("d", "c2"),
    ("c", "c3"),
    ("d", None),
    ("c", None),
]
JOINED_WITH_ITSELF = {
    "join": "a=a1+a1@0 a=a2+a2@1 b=a3+a2@2 b=None@3 a=None@3 b=a3+b1@4 a=b1+a3@4 a=None@5 b=None@5 a=None@6 "
    "c=c1+c1@7 c=None@8 c=d1+c2@10 d=c2+d1@10 d=c2+c3@11 c=c3+c3@11 d=None@12 c=None@13",
    "left_join": "a=a1+a1@0 a=a2+a2@1 b=a3+a2@2 b=a3+None@3 a=None@3 b=a3+b1@4 a=b1+a3@4 a=b1+None@5 b=None@5 a=None@6 "
    "c=c1+c1@7 c=None@8 c=d1+None@9 c=d1+c2@10 d=c2+d1@10 d=c2+c3@11 c=c3+c3@11 d=None@12 c=None@13",
}
"""Recorded with Kafka Streams 4.4.0, with and without the record cache."""


@pytest.mark.parametrize("config", [CACHED, UNCACHED], ids=["cached", "uncached"])
@pytest.mark.parametrize("kind", sorted(JOINED_WITH_ITSELF))
def test_a_table_joined_with_itself_deletes_each_row_once(kind, config):
    builder = ks.StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    getattr(table, kind)(table, concat, foreign_key=lambda value: value[0], value=str).to_stream().to("out")
    rows = [("in", key, value, time) for time, (key, value) in enumerate(CHANGES_OF_ONE_TABLE)]
    updates = [f"{key}={value}@{time}" for key, value, time in run(builder, rows, config)]
    assert " ".join(updates) == JOINED_WITH_ITSELF[kind]

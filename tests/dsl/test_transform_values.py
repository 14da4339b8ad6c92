"""Tables whose values a fixed-key processor makes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from tests.joins.driven import CACHED, UNCACHED, run, table_of


class Shout(ks.FixedKeyProcessor):
    """Forwards what a row is, louder; nothing for a row that says nothing."""

    def init(self, context):
        self.context = context

    def process(self, record):
        if record.value != "nothing":
            self.context.forward(record.with_value(str(record.value).upper()))


class Counted(ks.FixedKeyProcessor):
    """Forwards how often a row was updated."""

    @classmethod
    def stores(cls):
        return (ks.Stores.key_value("counts", key=str, value=int),)

    def init(self, context):
        self.context, self.counts = context, context.get_state_store("counts")

    def process(self, record):
        count = (self.counts.get(record.key) or 0) + 1
        self.counts.put(record.key, count)
        self.context.forward(record.with_value(f"{record.value}/{count}"))


def transformed(supplier, records, config=UNCACHED, view=lambda table: table, **options):
    builder = ks.StreamsBuilder()
    table = builder.table("in", key=str, value=str).transform_values(supplier, key=str, value=str, **options)
    view(table).to_stream().to("out", key=str, value=str)
    return run(builder, [("in", *record) for record in records], config)


@pytest.mark.parametrize("materialized", [None, "loud"])
def test_it_sees_deletions_too_and_a_row_without_value_is_deleted(materialized):
    records = [("a", "x", 0), ("b", "nothing", 1), ("a", None, 2)]
    expected = [("a", "X", 0), ("b", None, 1), ("a", "NONE", 2)]
    assert transformed(Shout, records, materialized=materialized) == expected


@pytest.mark.parametrize("materialized", [None, "counted"])
def test_it_may_keep_state_in_stores(materialized):
    records = [("a", "x", 0), ("a", "y", 1), ("b", "z", 2)]
    assert transformed(Counted, records, materialized=materialized) == [
        ("a", "x/1", 0),
        ("a", "y/2", 1),
        ("b", "z/1", 2),
    ]


updates = st.lists(
    st.tuples(st.sampled_from("ab"), st.none() | st.sampled_from(("x", "y", "nothing")), st.integers(0, 20)),
    max_size=15,
)


@settings(max_examples=40, deadline=None)
@given(updates, st.sampled_from((CACHED, UNCACHED)), st.sampled_from((None, "loud")))
def test_what_was_there_before_is_transformed_or_remembered(records, config, materialized):
    """Grouped by their loud values, the rows are counted: each must leave its old group."""

    def per_value(table):
        return table.group_by(lambda key, value: (value, value), key=str, value=str).count().map_values(str, value=str)

    builder = ks.StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    loud = table.filter(lambda k, v: True).transform_values(Known, key=str, value=str, materialized=materialized)
    per_value(loud).to_stream().to("out", key=str, value=str)
    counts = table_of(run(builder, [("in", *record) for record in records], config))
    rows = [value.upper() for value in table_of(records).values() if value != "nothing"]
    assert {value: count for value, count in counts.items() if count != "0"} == {v: str(rows.count(v)) for v in rows}


class Known(Shout):
    """As Shout, but a deletion stays one."""

    def process(self, record):
        if record.value is not None:
            super().process(record)


@pytest.mark.parametrize("materialized", [None, "loud"])
def test_others_may_look_its_rows_up(materialized):
    builder = ks.StreamsBuilder()
    table = builder.table("rows", key=str, value=str)
    loud = table.transform_values(Known, key=str, value=str, materialized=materialized)
    builder.stream("in", key=str, value=str).left_join(loud, lambda a, b: f"{a}+{b}").to("out", value=str)
    records = [("rows", "a", "x", 0), ("in", "a", "1", 1), ("in", "b", "2", 2)]
    assert run(builder, records) == [("a", "1+X", 1), ("b", "2+None", 2)]


class Impatient(Shout):
    """Forwards in a punctuator."""

    def init(self, context):
        super().init(context)
        context.schedule(1, ks.PunctuationType.STREAM_TIME, self.forward)

    def forward(self, now_ms):
        self.context.forward(ks.FixedKeyRecord(key="a", value="x", timestamp=now_ms))


def test_a_punctuator_has_no_row_to_forward():
    with pytest.raises(ProcessingError, match="may forward only while it processes"):
        transformed(Impatient, [("a", "x", 5)])


def test_it_takes_fixed_key_processors_alone():
    table = ks.StreamsBuilder().table("in", key=str, value=str)
    with pytest.raises(
        TopologyError, match="creates a object: give it a class or function that creates a FixedKeyProcessor"
    ):
        table.transform_values(object)


def test_it_takes_one_number_for_its_name():
    table = ks.StreamsBuilder().table("in", key=str, value=str, materialized="rows")
    assert "KTABLE-TRANSFORMVALUES-0000000002" in repr(table.transform_values(Shout))

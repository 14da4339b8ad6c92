"""A name that a handle does not have is answered with the one that is meant."""

from __future__ import annotations

import copy

import pytest

import kstreams as ks


def handles():
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    table, grouped = builder.table("t", key=str, value=str), stream.group_by_key()
    return {
        "builder": builder,
        "stream": stream,
        "table": table,
        "grouped": grouped,
        "windowed": grouped.windowed_by(ks.TimeWindows(size=5)),
        "sessions": grouped.windowed_by(ks.SessionWindows(gap=5)),
        "regrouped": table.group_by(lambda key, value: (value, key)),
        "cogrouped": grouped.cogroup(lambda key, value, total: total),
        "split": stream.split(),
    }


@pytest.mark.parametrize(
    ("handle", "name", "said"),
    [
        ("stream", "mapValues", "KStream has no mapValues: it is called map_values here"),
        ("stream", "flatMapp", "did you mean flat_map?"),
        ("stream", "transformValues", "write process_values()"),
        ("stream", "count", "a KGroupedStream has it, call group_by_key() first"),
        ("stream", "windowedBy", "a KGroupedStream has windowed_by, call group_by_key() first"),
        ("stream", "branch", "a BranchedKStream has it, call split() first"),
        ("stream", "queryableStoreName", "a KTable has queryable_store_name, call to_table() first"),
        ("table", "to", "KTable has no to: a KStream has it, call to_stream() first"),
        ("table", "count", "a KGroupedTable has it, call group_by(...) first"),
        ("grouped", "emit_strategy", "a TimeWindowedKStream has it, call windowed_by(...) first"),
        ("grouped", "to", "a KStream has it, call count().to_stream() first"),
        ("grouped", "sum", "write aggregate(total=ks.value.sum())"),
        ("windowed", "suppress", "write suppress() on the KTable of an aggregation"),
        ("sessions", "emitStrategy", "it is called emit_strategy here"),
        ("regrouped", "to_stream", "a KTable has it, call count() first"),
        ("cogrouped", "toStream", "a KTable has to_stream, call aggregate(...) first"),
        ("split", "to", "a KStream has it, call default_branch()[name] first"),
        ("builder", "globalTable", "it is called global_table here"),
        ("builder", "map", "a KStream has it, call stream(...) first"),
    ],
)
def test_the_name_that_is_meant(handle, name, said):
    with pytest.raises(AttributeError) as error:
        getattr(handles()[handle], name)
    assert said in str(error.value)


def test_handles_can_be_asked_and_copied():
    stream = handles()["stream"]
    assert not hasattr(stream, "count")
    assert repr(copy.copy(stream)) == repr(stream)


def test_the_package_completes_public_names_only():
    assert dir(ks) == sorted(ks.__all__)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("StreamBuilder", "did you mean StreamsBuilder?"),
        ("Consumed", "its place is taken by the keywords key=, value= and name="),
        ("TopologyTestDriver", "import it from kstreams.testing"),
    ],
)
def test_a_name_that_the_package_does_not_have(name, said):
    with pytest.raises(AttributeError) as error:
        getattr(ks, name)
    assert said in str(error.value)

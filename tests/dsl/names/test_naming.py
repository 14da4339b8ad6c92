"""Names: one counter per builder, numbers taken as Kafka Streams takes them."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.dsl.naming import Names, repartition_nodes, validate_name
from kstreams.errors import TopologyError


def names_of(builder):
    return list(builder.build().nodes)


def stream(builder, topic="in", **options):
    return builder.stream(topic, key=str, value=str, **options)


def test_every_operator_takes_the_next_number():
    builder = ks.StreamsBuilder()
    stream(builder).filter(lambda k, v: True).map_values(str.upper, value=str).to("out")
    assert names_of(builder) == [
        "KSTREAM-SOURCE-0000000000",
        "KSTREAM-FILTER-0000000001",
        "KSTREAM-MAPVALUES-0000000002",
        "KSTREAM-SINK-0000000003",
    ]


def test_a_named_operator_takes_its_number_all_the_same():
    builder = ks.StreamsBuilder()
    stream(builder).filter(lambda k, v: True, name="keep").to("out")
    assert names_of(builder) == ["KSTREAM-SOURCE-0000000000", "keep", "KSTREAM-SINK-0000000002"]


def test_a_branch_is_named_after_its_split_and_takes_a_number_that_is_not_shown():
    builder = ks.StreamsBuilder()
    branches = stream(builder).split().branch(lambda k, v: v == "a").default_branch()
    assert list(branches) == ["KSTREAM-BRANCH-00000000011", "KSTREAM-BRANCH-00000000010"]
    branches["KSTREAM-BRANCH-00000000010"].to("out")
    assert names_of(builder)[-1] == "KSTREAM-SINK-0000000004"


def test_branches_can_be_named_and_chained():
    builder = ks.StreamsBuilder()
    split = stream(builder).split(name="fork-")
    branches = split.branch(lambda k, v: v == "a", name="a", function=lambda s: s.to("a")).no_default_branch()
    assert branches == {}
    assert "fork-a" in names_of(builder)


def test_an_unnamed_table_takes_a_number_for_its_store_even_without_one():
    builder = ks.StreamsBuilder()
    builder.table("users", key=str, value=str)
    topology = builder.build()
    assert list(topology.nodes) == ["KSTREAM-SOURCE-0000000001", "KTABLE-SOURCE-0000000002"]
    assert not topology.stores


@pytest.mark.parametrize(("options", "aggregate"), [({}, 2), ({"key": str}, 3), ({"materialized": "c"}, 1)])
def test_a_count_that_is_described_but_not_named_takes_one_number_more(options, aggregate):
    builder = ks.StreamsBuilder()
    stream(builder).group_by_key().count(**options)
    assert names_of(builder)[-1] == f"KSTREAM-AGGREGATE-000000000{aggregate}"


def test_a_repartition_is_named_after_the_grouping_else_after_the_store():
    builder = ks.StreamsBuilder()
    by_value = stream(builder).select_key(lambda k, v: v, key=str)
    by_value.group_by_key(name="by-value").count()
    by_value.group_by_key().count("counts")
    by_value.group_by_key().count()
    assert [topic.name for topic in builder.build().repartition_topics] == [
        "by-value-repartition",
        "counts-repartition",
        "KSTREAM-AGGREGATE-STATE-STORE-0000000011-repartition",
    ]


def test_two_aggregations_of_one_named_grouping_share_its_repartition():
    builder = ks.StreamsBuilder()
    grouped = stream(builder).group_by(lambda k, v: v, key=str, name="by-value")
    grouped.count("a")
    grouped.count("b")
    assert [topic.name for topic in builder.build().repartition_topics] == ["by-value-repartition"]


def test_the_nodes_around_a_generated_repartition_topic_are_numbered_around_a_named_one_named():
    generated = "KSTREAM-AGGREGATE-STATE-STORE-0000000001-repartition"
    assert repartition_nodes(Names(), generated)[2] == "KSTREAM-SOURCE-0000000002"
    assert repartition_nodes(Names(), "mine-repartition")[1] == "mine-repartition-filter"


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250])
def test_a_name_must_be_one_that_a_topic_could_have(name):
    with pytest.raises(TopologyError, match="cannot be a name"):
        validate_name(name)


def test_a_name_can_be_used_once():
    builder = ks.StreamsBuilder()
    words = stream(builder)
    words.filter(lambda k, v: True, name="keep")
    with pytest.raises(
        TopologyError, match=r"'keep' at .*test_naming.py:\d+ is already the name of keep \(filter\(\) at .*name="
    ):
        words.filter(lambda k, v: True, name="keep")


@pytest.mark.parametrize(
    "declare",
    [
        lambda words: words.filter(lambda k, v: True, name="a b"),
        lambda words: words.group_by_key(name="a b"),
        lambda words: words.group_by(lambda k, v: v, key=str, name="a b"),
        lambda words: words.repartition(name="a b"),
        lambda words: words.split(name="a b"),
        lambda words: words.to_table(materialized="a b"),
        lambda words: words.join(words, lambda a, b: a, windows=ks.JoinWindows.of(1), name="a b"),
        lambda words: words.join(words, lambda a, b: a, windows=ks.JoinWindows.of(1), store_name="a b"),
    ],
)
def test_a_bad_name_is_refused_where_it_is_given(declare):
    with pytest.raises(TopologyError, match="'a b' cannot be a name"):
        declare(stream(ks.StreamsBuilder()))


def test_a_stream_whose_key_was_changed_is_repartitioned_once_for_two_joins():
    builder = ks.StreamsBuilder()
    words = stream(builder).select_key(lambda k, v: v, key=str)
    table = builder.table("users", key=str, value=str)
    words.join(table, lambda a, b: a).to("first", key=str, value=str)
    words.left_join(table, lambda a, b: a).to("second", key=str, value=str)
    topology = builder.build()
    assert [topic.name for topic in topology.repartition_topics] == ["KSTREAM-KEY-SELECT-0000000001-repartition"]
    assert "KSTREAM-LEFTJOIN-0000000013" in topology.nodes

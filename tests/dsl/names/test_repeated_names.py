"""Names that are taken already are refused as in Kafka Streams, also where two groupings would share a topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver

TEXTS: dict[str, Any] = {"key": str, "value": str}

Declare = Callable[[ks.StreamsBuilder], None]


def value(key: str, value: str) -> str:
    return value


def add(key: str, value: str, total: str) -> str:
    return total + value


def rekeyed(builder: ks.StreamsBuilder, topic: str = "a") -> ks.KStream[str, str]:
    return builder.stream(topic, **TEXTS).select_key(value, key=str)


def by_key(stream: ks.KStream[str, str]) -> ks.KGroupedStream[str, str]:
    return stream.group_by_key(name="g")


def other(builder: ks.StreamsBuilder, topic: str = "b") -> ks.KGroupedStream[str, str]:
    return builder.stream(topic, **TEXTS).group_by_key()


def cogrouped(*groups: ks.KGroupedStream[str, str]) -> ks.CogroupedKStream[str, str]:
    together = groups[0].cogroup(add)
    for group in groups[1:]:
        together = together.cogroup(group, add)
    return together


def cogroup_of_one_stream(builder: ks.StreamsBuilder) -> None:
    stream = rekeyed(builder)
    cogrouped(by_key(stream), by_key(stream)).aggregate(str)


def counts_of_two_groupings(builder: ks.StreamsBuilder) -> None:
    stream = rekeyed(builder)
    by_key(stream).count()
    by_key(stream).count()


def cogroup_and_count(builder: ks.StreamsBuilder) -> None:
    group = by_key(rekeyed(builder))
    cogrouped(group, other(builder)).aggregate(str)
    group.count()


def count_and_cogroup(builder: ks.StreamsBuilder) -> None:
    group = builder.stream("a", **TEXTS).group_by(value, name="g", **TEXTS)
    group.count()
    cogrouped(group, other(builder)).aggregate(str)


def two_cogroups(builder: ks.StreamsBuilder) -> None:
    group = by_key(rekeyed(builder))
    cogrouped(group, other(builder)).aggregate(str)
    cogrouped(group, other(builder, "c")).aggregate(str)


MERGED = [cogroup_of_one_stream, counts_of_two_groupings, cogroup_and_count, count_and_cogroup, two_cogroups]


@pytest.mark.parametrize("declare", MERGED)
def test_groupings_of_one_name_are_refused(declare: Declare) -> None:
    builder = ks.StreamsBuilder()
    declare(builder)
    said = r"The repartition topic 'g-repartition' at .*py:\d+ is already that of .*: give one grouping another name="
    with pytest.raises(TopologyError, match=said):
        builder.build()


@pytest.mark.parametrize("setting", ["all", "merge.repartition.topics"])
@pytest.mark.parametrize("declare", MERGED)
def test_where_repartitions_are_merged_they_share_a_topic(declare: Declare, setting: str) -> None:
    builder = ks.StreamsBuilder()
    declare(builder)
    topics = builder.build({"topology.optimization": setting}).repartition_topics
    assert [topic.name for topic in topics] == ["g-repartition"]


def count_twice(builder: ks.StreamsBuilder) -> None:
    group = by_key(rekeyed(builder))
    group.count()
    group.windowed_by(ks.TimeWindows(size=5, grace=0)).count()


def aggregate_a_cogroup_twice(builder: ks.StreamsBuilder) -> None:
    together = cogrouped(by_key(rekeyed(builder)), other(builder))
    together.aggregate(str)
    together.aggregate(str)


def cogroup_one_grouping_twice(builder: ks.StreamsBuilder) -> None:
    group = by_key(rekeyed(builder))
    cogrouped(group, group).aggregate(str)


def count_a_grouped_table_twice(builder: ks.StreamsBuilder) -> None:
    group = builder.table("a", **TEXTS).group_by(lambda key, value: (value, value), name="g", **TEXTS)
    group.count()
    group.count()


@pytest.mark.parametrize(
    "declare", [count_twice, aggregate_a_cogroup_twice, cogroup_one_grouping_twice, count_a_grouped_table_twice]
)
def test_aggregations_of_one_grouping_share_its_topic(declare: Declare) -> None:
    builder = ks.StreamsBuilder()
    declare(builder)
    assert [topic.name for topic in builder.build().repartition_topics] == ["g-repartition"]


def test_two_counts_of_a_grouped_table_both_get_all_rows() -> None:
    builder = ks.StreamsBuilder()
    group = builder.table("in", **TEXTS).group_by(lambda key, value: (value, value), name="g", **TEXTS)
    group.count("one")
    group.count("other")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", **TEXTS)
        for key, row in (("a", "x"), ("b", "x"), ("a", "y")):
            topic.pipe_input(key, row)
        stores = [driver.get_key_value_store(name) for name in ("one", "other")]
        assert [list(store.all()) for store in stores] == [[("x", 1), ("y", 1)]] * 2


def two_groupings(builder: ks.StreamsBuilder) -> None:
    for topic in "ab":
        builder.stream(topic, **TEXTS).group_by(value, name="g", **TEXTS)


def two_repartitions(builder: ks.StreamsBuilder) -> None:
    for topic in "ab":
        builder.stream(topic, **TEXTS).repartition(name="g")


def repartition_and_grouping(builder: ks.StreamsBuilder) -> None:
    builder.stream("a", **TEXTS).repartition(name="g")
    by_key(rekeyed(builder, "b")).count()


def two_filters(builder: ks.StreamsBuilder) -> None:
    for topic in "ab":
        builder.stream(topic, **TEXTS).filter(lambda key, value: True, name="f")


def two_sinks(builder: ks.StreamsBuilder) -> None:
    stream = builder.stream("a", **TEXTS)
    stream.to("x", name="sink")
    stream.to("y", name="sink")


def two_branches(builder: ks.StreamsBuilder) -> None:
    split = builder.stream("a", **TEXTS).split(name="b-")
    split.branch(lambda key, value: True, name="x").branch(lambda key, value: True, name="x").no_default_branch()


@pytest.mark.parametrize(
    "declare", [two_groupings, two_repartitions, repartition_and_grouping, two_filters, two_sinks, two_branches]
)
def test_an_operator_of_a_name_that_is_taken_is_refused(declare: Declare) -> None:
    with pytest.raises(TopologyError, match=r"is already the name of .*: give one of them another name="):
        declare(ks.StreamsBuilder())


@pytest.mark.parametrize(
    "declare",
    [
        lambda builder: [builder.table(topic, **TEXTS, materialized="s") for topic in "ab"],
        lambda builder: [other(builder, topic).count("s") for topic in "ab"],
        lambda builder: [builder.global_table("a", **TEXTS, materialized="s"), other(builder).count("s")],
    ],
)
def test_two_stores_of_one_name_are_refused(declare: Callable[[ks.StreamsBuilder], Any]) -> None:
    builder = ks.StreamsBuilder()
    declare(builder)
    with pytest.raises(TopologyError, match=r"keeps a store 's', as .* does: give one another name"):
        builder.build()

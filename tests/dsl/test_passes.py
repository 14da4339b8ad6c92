"""Optimizer passes: the topology before and after each, and the same results from both."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.dsl.passes import OPTIMIZATIONS
from kstreams.errors import ConfigError
from kstreams.testing import TopologyTestDriver

REUSE, MERGE, SELF_JOIN = OPTIMIZATIONS
TEXTS = {"key": str, "value": str}


def optimized(builder, setting):
    return builder.build({"topology.optimization": setting})


def nodes(topology):
    """`node <- parents` of every node, in order."""
    return [
        f"{name} <- {', '.join(getattr(node, 'parents', ()))}".rstrip(" <-") for name, node in topology.nodes.items()
    ]


def outputs(topology, rows, topic="out", value=str):
    config = {"statestore.cache.max.bytes": 0}
    with TopologyTestDriver(topology, config, start_ms=0) as driver:
        given = driver.create_input_topic("in", **TEXTS)
        for key, text, timestamp in rows:
            given.pipe_record(ks.Record(key=key, value=text, timestamp=timestamp))
        found = driver.create_output_topic(topic, key=str, value=value).read_records()
        return [(record.key, record.value, record.timestamp) for record in found]


ROWS = [("a", "x", 0), ("b", "y", 3), ("a", "z", 4), (None, "w", 5), ("a", None, 6), ("b", "x", 90), ("a", "old", 50)]


# reuse.ktable.source.topics


def table():
    builder = ks.StreamsBuilder()
    builder.table("in", **TEXTS, materialized="rows").to_stream().to("out")
    return builder


def test_a_table_has_a_changelog_unless_its_source_topic_is_reused():
    assert [topic.name for topic in table().build().changelog_topics] == ["rows-changelog"]
    topology = optimized(table(), REUSE)
    assert topology.changelog_topics == ()
    assert topology.stores["rows"].source_topic == "in"
    assert topology.describe() == table().build().describe()


def test_a_reused_source_topic_changes_no_result():
    assert outputs(optimized(table(), REUSE), ROWS) == outputs(table().build(), ROWS)


def test_a_table_made_of_a_stream_keeps_its_changelog():
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).to_table(materialized="rows")
    assert [topic.name for topic in optimized(builder, REUSE).changelog_topics] == ["rows-changelog"]


def test_a_table_with_history_keeps_its_changelog():
    builder = ks.StreamsBuilder()
    versions = ks.Materialized("rows", history_retention=60_000)
    builder.table("in", **TEXTS, materialized=versions).to_stream().to("out")
    assert [topic.name for topic in optimized(builder, REUSE).changelog_topics] == ["rows-changelog"]


# merge.repartition.topics


def two_counts():
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).select_key(lambda key, value: value, key=str)
    words.filter(lambda key, value: key != "y").group_by_key().count().to_stream().to("out")
    words.group_by_key().count("all").to_stream().to("counts")
    return builder


def test_repartitions_behind_one_change_of_keys_before():
    assert nodes(two_counts().build())[2:8] == [
        "KSTREAM-FILTER-0000000002 <- KSTREAM-KEY-SELECT-0000000001",
        "KSTREAM-FILTER-0000000006 <- KSTREAM-FILTER-0000000002",
        "KSTREAM-SINK-0000000005 <- KSTREAM-FILTER-0000000006",
        "KSTREAM-SOURCE-0000000007",
        "KSTREAM-AGGREGATE-0000000004 <- KSTREAM-SOURCE-0000000007",
        "KTABLE-TOSTREAM-0000000008 <- KSTREAM-AGGREGATE-0000000004",
    ]


def test_repartitions_behind_one_change_of_keys_become_one():
    topic = "KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition"
    topology = optimized(two_counts(), MERGE)
    assert [found.name for found in topology.repartition_topics] == [topic]
    assert nodes(topology)[:7] == [
        "KSTREAM-SOURCE-0000000000",
        "KSTREAM-KEY-SELECT-0000000001 <- KSTREAM-SOURCE-0000000000",
        f"{topic}-filter <- KSTREAM-KEY-SELECT-0000000001",
        f"{topic}-sink <- {topic}-filter",
        f"{topic}-source",
        f"KSTREAM-FILTER-0000000002 <- {topic}-source",
        "KSTREAM-AGGREGATE-0000000004 <- KSTREAM-FILTER-0000000002",
    ]
    assert f"all-repartition-source <- {topic}-source" not in nodes(topology)


@pytest.mark.parametrize("topic", ["out", "counts"])
def test_merged_repartitions_change_no_result(topic):
    before, after = (
        outputs(built, ROWS, topic, int) for built in (two_counts().build(), optimized(two_counts(), MERGE))
    )
    assert before
    assert after == before


def test_a_step_that_changes_values_keeps_its_repartition():
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).select_key(lambda key, value: value, key=str)
    words.map_values(str.upper, value=str).group_by_key().count("upper")
    words.group_by_key().count("plain")
    names = [topic.name for topic in optimized(builder, MERGE).repartition_topics]
    assert names == ["plain-repartition", "upper-repartition"]


def test_what_the_user_repartitions_stays():
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).select_key(lambda key, value: value, key=str)
    words.repartition(name="mine").group_by_key().count("counts")
    assert [topic.name for topic in optimized(builder, MERGE).repartition_topics] == ["mine-repartition"]


def test_repartitions_behind_a_merge_of_streams_become_one_behind_it():
    builder = ks.StreamsBuilder()
    lines = builder.stream("in", **TEXTS)
    by_value = lines.select_key(lambda key, value: value, key=str)
    merged = by_value.merge(lines.select_key(lambda key, value: key, key=str))
    merged.group_by_key().count("one").to_stream().to("out")
    merged.group_by_key().count("two")
    topology = optimized(builder, MERGE)
    assert [topic.name for topic in topology.repartition_topics] == ["one-repartition"]
    assert "one-repartition-filter <- KSTREAM-MERGE-0000000003" in nodes(topology)
    assert outputs(topology, ROWS, "out", int) == outputs(builder.build(), ROWS, "out", int)


def test_two_repartitions_behind_one_filter_become_one():
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).select_key(lambda key, value: value, key=str)
    kept = words.filter(lambda key, value: True)
    kept.group_by_key().count("one").to_stream().to("out")
    kept.group_by_key().count("two")
    topology = optimized(builder, MERGE)
    assert [topic.name for topic in topology.repartition_topics] == ["one-repartition"]
    assert outputs(topology, ROWS, "out", int) == outputs(builder.build(), ROWS, "out", int)


def counts(builder, *streams):
    for number, stream in enumerate(streams, 1):
        stream.group_by_key().count(f"count-{number}").to_stream().to(f"out-{number}")
    return builder


def test_the_first_of_merged_streams_decides_where_its_repartition_goes():
    def build(ways):
        builder = ks.StreamsBuilder()
        words = builder.stream("in", **TEXTS).select_key(lambda key, value: value, key=str)
        sides = {"plain": words.peek(lambda key, value: None), "upper": words.map_values(str.upper, value=str)}
        left, right = (sides[way] for way in ways)
        return counts(builder, left.peek(lambda key, value: None).merge(right.peek(lambda key, value: None)), words)

    merged, kept = (optimized(build(ways), MERGE) for ways in (["plain", "upper"], ["upper", "plain"]))
    assert [topic.name for topic in merged.repartition_topics] == ["count-1-repartition"]
    assert [topic.name for topic in kept.repartition_topics] == ["count-2-repartition", "count-1-repartition"]


def test_a_way_that_was_moved_is_not_looked_for_again():
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).select_key(lambda key, value: value, key=str)
    one, two = words.peek(lambda key, value: None), words.filter(lambda key, value: True)
    counts(builder, one.merge(two), two)
    found = nodes(optimized(builder, MERGE))
    assert "KSTREAM-PEEK-0000000002 <- count-1-repartition-source" in found
    assert "KSTREAM-FILTER-0000000003 <- count-1-repartition-source" in found


def test_where_kafka_streams_finds_no_way_to_move_repartitions_are_merged_all_the_same():
    # Kafka Streams refuses this topology: "Found a null keyChangingChild node".
    builder = ks.StreamsBuilder()
    kept = builder.stream("in", **TEXTS).select_key(lambda key, value: value, key=str).filter(lambda key, value: True)
    counts(builder, kept, kept)
    topology = optimized(builder, MERGE)
    assert [topic.name for topic in topology.repartition_topics] == ["count-1-repartition"]
    assert outputs(topology, ROWS, "out-2", int) == outputs(builder.build(), ROWS, "out-2", int) != []


def test_a_stream_merged_with_itself_comes_once():
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS)
    words.merge(builder.stream("in", **TEXTS)).merge(words).to("out", **TEXTS)
    assert outputs(builder.build(), [("a", "x", 0)]) == [("a", "x", 0)] * 2


# single.store.self.join


def self_join(method="join"):
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS)
    windows = ks.JoinWindows(before=10, after=20, grace=5)
    getattr(words, method)(words, lambda left, right: f"{left}{right}", windows=windows).to("out", **TEXTS)
    return builder


def test_a_self_join_keeps_the_stream_twice_unless_optimized():
    assert set(self_join().build().stores) == {
        "KSTREAM-JOINTHIS-0000000003-store",
        "KSTREAM-JOINOTHER-0000000004-store",
    }
    topology = optimized(self_join(), SELF_JOIN)
    assert set(topology.stores) == {"KSTREAM-JOINTHIS-0000000003-store"}
    assert nodes(topology)[1:3] == [
        "KSTREAM-WINDOWED-0000000001 <- KSTREAM-SOURCE-0000000000",
        "KSTREAM-MERGE-0000000005 <- KSTREAM-WINDOWED-0000000001",
    ]


def test_a_self_join_gives_the_same_from_one_store():
    before = outputs(self_join().build(), ROWS)
    assert ("a", "xz", 4) in before
    assert outputs(optimized(self_join(), SELF_JOIN), ROWS) == before


@pytest.mark.parametrize(("method", "passed"), [("join", []), ("left_join", ["w"]), ("outer_join", ["w"])])
@pytest.mark.parametrize("setting", ["none", SELF_JOIN])
def test_a_repartition_before_an_outer_self_join_lets_null_keys_pass(method, passed, setting):
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).repartition()
    getattr(words, method)(words, lambda a, b: f"{a}{b}", windows=ks.JoinWindows.of(10)).to("joined", value=str)
    words.to("out")
    assert [value for _, value, _ in outputs(optimized(builder, setting), [(None, "w", 5)])] == passed


@pytest.mark.parametrize("method", ["left_join", "outer_join"])
def test_outer_self_joins_are_rewritten_too(method):
    topology = optimized(self_join(method), SELF_JOIN)
    assert len(topology.stores) == 1
    assert outputs(topology, ROWS) == outputs(self_join("join").build(), ROWS)


@pytest.mark.parametrize(("late_by", "meets_itself"), [(33, True), (34, False)])
def test_a_record_late_by_what_a_store_keeps_does_not_meet_itself(late_by, meets_itself):
    # Windows reach over 30 ms, and grace adds 5: Kafka Streams leaves out two of these 35 ms.
    rows = [("b", "later", 100), ("a", "late", 100 - late_by)]
    found = outputs(optimized(self_join(), SELF_JOIN), rows)
    assert (("a", "latelate", 100 - late_by) in found) is meets_itself


def test_streams_of_one_topic_joined_are_one_stream():
    builder = ks.StreamsBuilder()
    left, right = builder.stream("in", **TEXTS), builder.stream("in", **TEXTS)
    left.join(right, lambda a, b: a, windows=ks.JoinWindows.of(10)).to("out", **TEXTS)
    assert len(optimized(builder, SELF_JOIN).stores) == 1


def test_a_join_of_two_streams_stays_as_it_is():
    builder = ks.StreamsBuilder()
    left, right = builder.stream("in", **TEXTS), builder.stream("other", **TEXTS)
    left.join(right, lambda a, b: a, windows=ks.JoinWindows.of(10)).to("out", **TEXTS)
    assert optimized(builder, SELF_JOIN).describe() == builder.build().describe()


# the setting


def test_all_is_every_pass_and_a_list_some_of_them():
    assert optimized(self_join(), "all").describe() == optimized(self_join(), SELF_JOIN).describe()
    assert optimized(self_join(), f"{REUSE}, {MERGE}").describe() == self_join().build().describe()


def test_the_setting_may_be_given_to_the_builder_or_to_build():
    builder = ks.StreamsBuilder({"topology.optimization": "all"})
    builder.table("in", **TEXTS, materialized="rows")
    assert builder.build().changelog_topics == ()
    assert len(optimized(builder, "none").changelog_topics) == 1


@pytest.mark.parametrize("setting", ["some", "all,none", "merge.repartition.topics,all", ""])
def test_a_wrong_setting_is_refused(setting):
    with pytest.raises(ConfigError, match=r"topology\.optimization"):
        optimized(self_join(), setting)


# any topology

STEPS = {
    "rekey": lambda stream: stream.select_key(lambda key, value: (value or "")[:1] or None, key=str),
    "filter": lambda stream: stream.filter(lambda key, value: key != "y"),
    "map": lambda stream: stream.map_values(lambda value: value and value + "!", value=str),
    "peek": lambda stream: stream.peek(lambda key, value: None),
    "repartition": lambda stream: stream.repartition(key=str, value=str),
}
WAYS = st.lists(st.lists(st.sampled_from(sorted(STEPS)), max_size=3), min_size=1, max_size=3)


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=3), WAYS, st.booleans())
@settings(max_examples=25, deadline=None)
def test_no_optimization_changes_a_result(trunk, ways, merged):
    def build():
        builder = ks.StreamsBuilder()
        stream = builder.stream("in", **TEXTS)
        for step in trunk:
            stream = STEPS[step](stream)
        ends = []
        for way in ways:
            end = stream
            for step in way:
                end = STEPS[step](end)
            ends.append(end)
        if merged:
            ends.append(reduce(lambda a, b: a.merge(b), ends))
        for number, end in enumerate(ends):
            end.group_by_key(key=str, value=str).count().to_stream().to(f"counts-{number}")
        return builder

    plain, optimized_ = build().build(), optimized(build(), "all")
    assert len(optimized_.repartition_topics) <= len(plain.repartition_topics)
    for number in range(len(ways) + merged):
        topic = f"counts-{number}"
        before, after = outputs(plain, ROWS, topic, int), outputs(optimized_, ROWS, topic, int)
        assert sorted(after) == sorted(before)

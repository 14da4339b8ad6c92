"""The topology: sub-topologies, internal topics, stores; built by rules or by hand."""

from __future__ import annotations

import kstreams as ks
from kstreams.processor.operators.stateless import PassOperator
from kstreams.state.stores import Stores

DAY_MS = 86_400_000


def words(builder, topic="in"):
    return builder.stream(topic, key=str, value=str)


def test_streams_of_the_same_topics_are_read_once():
    builder = ks.StreamsBuilder()
    builder.stream(["a", "b"], key=str, value=str).to("x")
    builder.stream(["b", "a"], key=str, value=str).to("y")
    topology = builder.build()
    assert topology.source_topics == ("a", "b")
    assert [node.parents for node in topology.nodes.values() if hasattr(node, "topic")] == [
        ("KSTREAM-SOURCE-0000000000",),
        ("KSTREAM-SOURCE-0000000000",),
    ]


def test_a_topology_can_be_built_twice():
    builder = ks.StreamsBuilder()
    words(builder).group_by_key().count("counts")
    assert builder.build().describe() == builder.build().describe()


def test_parts_are_connected_by_edges_and_by_shared_stores():
    topology = ks.Topology()
    for name in "abc":
        topology.add_source(name, [f"topic-{name}"], key=str, value=str)
        topology.add_processor(f"{name}-step", ks.Processor, name)
    topology.add_state_store(Stores.key_value("shared", key=str, value=str), "a-step", "c-step")
    assert [[node.name for node in part.nodes] for part in topology.sub_topologies] == [
        ["a", "a-step", "c", "c-step"],
        ["b", "b-step"],
    ]
    assert [store.name for store in topology.sub_topologies[0].stores] == ["shared"]


def test_internal_topics_have_the_settings_of_kafka_streams():
    builder = ks.StreamsBuilder()
    grouped = words(builder).group_by(lambda k, v: v, key=str, name="by-value")
    grouped.count("counts")
    grouped.windowed_by(ks.TimeWindows(size=100, grace=50)).count("hourly")
    builder.table("prices", key=str, value=str, materialized=ks.Materialized("prices", history_retention=1_000))
    topics = {topic.name: topic.config for topic in builder.build().internal_topics}
    create_time = {"message.timestamp.type": "CreateTime"}
    assert topics == {
        "by-value-repartition": {
            **create_time,
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "segment.bytes": "52428800",
        },
        "counts-changelog": {**create_time, "cleanup.policy": "compact"},
        "hourly-changelog": {
            **create_time,
            "cleanup.policy": "compact,delete",
            "retention.ms": str(150 + DAY_MS),
        },
        "prices-changelog": {**create_time, "cleanup.policy": "compact"},
    }


def test_a_changelog_can_be_configured_and_left_out():
    builder = ks.StreamsBuilder()
    grouped = words(builder).group_by_key()
    grouped.count(ks.Materialized("quiet", logging=False))
    grouped.count(ks.Materialized("loud", logging={"segment.ms": "1000"}))
    (topic,) = builder.build().changelog_topics
    assert (topic.name, topic.config["segment.ms"]) == ("loud-changelog", "1000")


def test_a_global_table_has_no_changelog_and_a_part_of_its_own():
    builder = ks.StreamsBuilder()
    builder.global_table("airlines", key=str, value=str)
    words(builder).to("out")
    topology = builder.build()
    assert [part.is_global for part in topology.sub_topologies] == [True, False]
    assert topology.global_stores == {"airlines-STATE-STORE-0000000000"}
    assert topology.internal_topics == ()


def test_every_node_knows_the_operator_it_came_from():
    builder = ks.StreamsBuilder()
    words(builder).repartition(name="again").to("out")
    topology = builder.build()
    source = "again-repartition-source"
    assert {topology.origin[f"again-repartition-{part}"] for part in ("filter", "sink", "source")} == {source}
    assert topology.graph[source].explicit


def test_tables_are_kept_only_if_something_looks_into_them():
    def stores(declare):
        builder = ks.StreamsBuilder()
        declare(builder.table("t", key=str, value=str), words(builder))
        return set(builder.build().stores)

    store = "t-STATE-STORE-0000000000"
    assert stores(lambda t, s: t.filter(lambda k, v: True).to_stream().to("out")) == set()
    assert stores(lambda t, s: t.filter(lambda k, v: True, materialized="kept")) == {"kept"}
    assert stores(lambda t, s: s.join(t.map_values(len, value=int), lambda a, b: a)) == {store}
    assert store in stores(lambda t, s: t.group_by(lambda k, v: (v, k), key=str, value=str).count())


def test_a_repartition_lets_null_keys_pass_only_before_a_join_that_takes_them():
    def kept(declare):
        builder = ks.StreamsBuilder()
        rekeyed = words(builder).select_key(lambda k, v: None, key=str)
        declare(rekeyed, builder.table("t", key=str, value=str))
        steps = builder.build().nodes.values()
        return any(isinstance(getattr(node, "operator", None), PassOperator) for node in steps)

    assert kept(lambda s, t: s.repartition().left_join(t, lambda a, b: a))
    assert not kept(lambda s, t: s.repartition().join(t, lambda a, b: a))

"""Topics that several sources would read: refused when declared, or when a topic shows that two patterns match it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.processor.topology.layout import lay_out
from kstreams.processor.topology.topology import Topology
from kstreams.testing import TopologyTestDriver

TEXTS: dict[str, Any] = {"key": str, "value": str}
ANY_I = re.compile("i.*")
ANY_IN = re.compile("in.*")


def stream(topics: Any, out: str = "out") -> Callable[[ks.StreamsBuilder], None]:
    return lambda builder: builder.stream(topics, **TEXTS).to(out)


def table(topic: str) -> Callable[[ks.StreamsBuilder], None]:
    return lambda builder: builder.table(topic, **TEXTS).to_stream().to("of-table")


def global_table(topic: str) -> Callable[[ks.StreamsBuilder], None]:
    return lambda builder: builder.global_table(topic, **TEXTS) and None


def built(*sources: Callable[[ks.StreamsBuilder], None]) -> Topology:
    builder = ks.StreamsBuilder()
    for source in sources:
        source(builder)
    return builder.build()


def values_of(topology: Topology, topic: str, *outputs: str) -> list[list[str]]:
    """What comes out at each output of one record."""
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic(topic, **TEXTS).pipe_input("k", "v")
        outs = [driver.create_output_topic(output, **TEXTS) for output in outputs]
        return [[record.value for record in out.read_records()] for out in outs]


@pytest.mark.parametrize(
    "sources",
    [
        [stream("in"), stream(ANY_I)],
        [stream(ANY_I), stream("in")],
        [stream(["x", "in"]), stream(ANY_I)],
        [table("in"), stream(ANY_I)],
        [stream(ANY_I), table("in")],
        [stream(ANY_I), global_table("in")],
    ],
)
def test_a_topic_that_one_source_names_and_anothers_pattern_matches_is_refused(sources: list[Any]) -> None:
    with pytest.raises(TopologyError, match=r"topic 'in' is read by .*: one names it, and the pattern 'i\.\*' of the"):
        built(*sources)


@pytest.mark.parametrize(
    "sources",
    [
        [stream("in"), table("in")],
        [table("in"), table("in")],
        [stream(["in", "x"]), stream("in")],
        [stream("in"), global_table("in")],
        [global_table("in"), stream("in")],
        [global_table("in"), global_table("in")],
    ],
)
def test_a_topic_that_two_sources_name_is_refused(sources: list[Any]) -> None:
    with pytest.raises(TopologyError, match=r"reads topic 'in', which .* reads already"):
        built(*sources)


@pytest.mark.parametrize("topics", ["in", ANY_I])
def test_streams_of_the_same_topics_both_get_all(topics: Any) -> None:
    topology = built(stream(topics, "one"), stream(topics, "other"))
    assert values_of(topology, "in", "one", "other") == [["v"], ["v"]]


def test_streams_of_the_same_topics_in_another_order_both_get_all() -> None:
    topology = built(stream(["in", "x"], "one"), stream(["x", "in"], "other"))
    assert values_of(topology, "in", "one", "other") == [["v"], ["v"]]


def test_a_topic_named_twice_in_one_stream_is_read_once() -> None:
    assert values_of(built(stream(["in", "in"])), "in", "out") == [["v"]]


def test_a_pattern_may_match_the_topic_of_a_global_table_declared_before_and_both_get_all() -> None:
    topology = built(lambda builder: builder.global_table("in", **TEXTS, materialized="all") and None, stream(ANY_I))
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in", **TEXTS).pipe_input("k", "v")
        assert [record.value for record in driver.create_output_topic("out", **TEXTS).read_records()] == ["v"]
        assert driver.get_key_value_store("all").get("k") == "v"


@pytest.mark.parametrize("other", [ANY_IN, re.compile("i.*", re.IGNORECASE)])
def test_a_topic_that_two_patterns_match_is_refused_when_it_comes(other: re.Pattern[str]) -> None:
    topology = built(stream(ANY_I, "one"), stream(other, "other"))
    with pytest.raises(TopologyError, match=r"Topic 'in' is read by .*'i\.\*'.* and by .*: a topic has one source"):
        values_of(topology, "in", "one")
    with pytest.raises(TopologyError, match="Topic 'in' is read by"):
        lay_out(topology, "app", {"in": 1, "other": 1})


def test_topics_of_disjoint_patterns_go_each_to_its_source() -> None:
    topology = built(stream(re.compile("a.*"), "one"), stream(re.compile("b.*"), "other"))
    assert values_of(topology, "a1", "one", "other") == [["v"], []]
    assert values_of(topology, "b1", "one", "other") == [[], ["v"]]


def test_a_pattern_does_not_match_internal_topics() -> None:
    builder = ks.StreamsBuilder()
    builder.stream(re.compile(".*"), **TEXTS).group_by(lambda key, value: value, key=str).count("n").to_stream().to(
        "out"
    )
    layout = lay_out(builder.build(), "app", {"in": 1})
    assert layout.inputs == {0: ("in",), 1: ("app-n-repartition",)}


def by_hand(*topics: Any) -> Topology:
    topology = Topology()
    for at, each in enumerate(topics):
        topology.add_source(f"source-{at}", each, **TEXTS)
    return topology


@pytest.mark.parametrize("topics", [("in", ANY_I), (ANY_I, "in"), (["x", "in"], ANY_I)])
def test_by_hand_a_name_and_a_pattern_that_matches_it_are_refused(topics: tuple[Any, ...]) -> None:
    with pytest.raises(TopologyError, match=r"topic 'in' is read by source-1 .* and by source-0 .*'i\.\*'"):
        by_hand(*topics)


def test_by_hand_a_topic_may_be_named_once() -> None:
    with pytest.raises(TopologyError, match=r"source-1 .*reads topic 'in', which source-0 .*reads already"):
        by_hand("in", "in")
    with pytest.raises(TopologyError, match=r"source-0 .*names topic 'in' twice"):
        by_hand(["in", "in"])


def test_a_sink_may_write_a_topic_that_is_read() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).filter(lambda key, value: len(value) < 4).map_values(
        lambda value: value + "!", value=str
    ).to("in")
    assert values_of(builder.build(), "in", "in") == [["v!", "v!!", "v!!!"]]

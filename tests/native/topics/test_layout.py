"""How many partitions and tasks a topology gets, and what is refused."""

from __future__ import annotations

import pytest

from kstreams.errors import TopologyError, UnknownTopicError
from kstreams.processor.topology.layout import lay_out
from kstreams.processor.topology.topology import InternalTopic, Topology


def reads(topology: Topology, name: str, *topics: str) -> Topology:
    return topology.add_source(name, topics, key=str, value=str)


def writes(topology: Topology, name: str, topic: str, parent: str) -> Topology:
    return topology.add_sink(name, topic, parent, key=str, value=str)


def repartitioned(partitions: int | None = None) -> Topology:
    """in -> via (internal) -> out."""
    topology = writes(reads(Topology(), "a", "in"), "b", "via", "a")
    topology.add_repartition_topic(InternalTopic("via", "repartition", partitions))
    return writes(reads(topology, "c", "via"), "d", "out", "c")


def test_a_sub_topology_has_a_task_for_each_partition_of_its_widest_input() -> None:
    topology = writes(reads(Topology(), "a", "narrow", "wide"), "b", "out", "a")
    layout = lay_out(topology, "app", {"narrow": 1, "wide": 3})
    assert [[str(source) for source in task.inputs] for task in layout.tasks] == [
        ["narrow-0", "wide-0"],
        ["wide-1"],
        ["wide-2"],
    ]
    assert layout.partitions["out"] == 3


def test_a_repartition_topic_is_as_wide_as_what_it_comes_from_and_carries_the_application_id() -> None:
    layout = lay_out(repartitioned(), "app", {"in": 4, "out": 2})
    assert layout.topic_names == {"via": "app-via"}
    assert layout.partitions == {"in": 4, "app-via": 4, "out": 2}
    assert layout.upstream == {0: frozenset(), 1: frozenset({0})}


def test_a_repartition_topic_can_be_given_its_width() -> None:
    layout = lay_out(repartitioned(7), "app", {"in": 4})
    assert layout.partitions == {"in": 4, "app-via": 7, "out": 7}
    assert len(layout.tasks) == 4 + 7


def test_a_circle_of_sub_topologies_takes_its_width_from_what_is_outside() -> None:
    topology = writes(reads(Topology(), "a", "in", "back"), "b", "forth", "a")
    topology.add_repartition_topic(InternalTopic("forth", "repartition"))
    topology.add_repartition_topic(InternalTopic("back", "repartition"))
    writes(reads(topology, "c", "forth"), "d", "back", "c")
    layout = lay_out(topology, "app", {"in": 3})
    assert layout.partitions["app-forth"] == layout.partitions["app-back"] == 3


def test_a_missing_source_topic_is_named_with_the_nearest_one() -> None:
    with pytest.raises(UnknownTopicError, match=r"no topic 'flight', which a .* reads\. Did you mean 'flights'"):
        lay_out(reads(Topology(), "a", "flight"), "app", {"flights": 1})
    with pytest.raises(UnknownTopicError, match="kstreams topics create orders"):
        lay_out(reads(Topology(), "a", "orders"), "app", {"flights": 1})


def test_topics_that_are_joined_must_be_equally_wide() -> None:
    topology = reads(reads(Topology(), "a", "left"), "b", "right")
    topology.copartition(["left", "right"])
    with pytest.raises(TopologyError, match=r"Topics not co-partitioned: \[\{left=2, right=3\}\]"):
        lay_out(topology, "app", {"left": 2, "right": 3})


def test_the_repartitioned_side_of_a_join_adopts_the_width_of_the_other() -> None:
    topology = repartitioned()
    reads(topology, "e", "table")
    topology.copartition(["via", "table"])
    assert lay_out(topology, "app", {"in": 2, "table": 5}).partitions["app-via"] == 5


def test_two_repartitioned_sides_of_a_join_take_the_greater_width() -> None:
    topology = repartitioned()
    writes(reads(topology, "x", "in2"), "y", "via2", "x")
    topology.add_repartition_topic(InternalTopic("via2", "repartition"))
    reads(topology, "z", "via2")
    topology.copartition(["via", "via2"])
    partitions = lay_out(topology, "app", {"in": 2, "in2": 6}).partitions
    assert partitions["app-via"] == partitions["app-via2"] == 6


def test_an_internal_topic_of_another_width_is_not_used() -> None:
    with pytest.raises(TopologyError, match=r"app-via has 2 partitions, but the topology now needs 4: .*--reset"):
        lay_out(repartitioned(), "app", {"in": 4, "app-via": 2})


def test_a_topology_that_reads_nothing_is_refused() -> None:
    with pytest.raises(TopologyError, match="the topology reads no topic: declare a stream, a table or a global table"):
        lay_out(Topology(), "app", {})

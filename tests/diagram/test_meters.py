"""Which counter tells how many records pass a wire."""

from __future__ import annotations

from typing import Any

import kstreams as ks
from kstreams.diagram.meters import meters_of
from kstreams.processor.topology.nodes import parents_of

TEXTS: dict[str, Any] = {"key": str, "value": str}


def kinds(topology: ks.Topology) -> dict[tuple[str, str], str]:
    return {ends: str(meter) for ends, meter in meters_of(topology).items()}


def test_steps_that_pass_all_on_have_the_number_of_the_source_before_or_the_sink_behind() -> None:
    builder = ks.StreamsBuilder()
    read = builder.stream("in", **TEXTS, name="read").map_values(str.upper, value=str, name="upper")
    read.filter(lambda key, value: True, name="kept").map_values(str.lower, value=str, name="lower").to(
        "out", name="write"
    )
    assert kinds(builder.build()) == {
        ("in", "read"): "read:read",
        ("read", "upper"): "passed:read",
        ("upper", "kept"): "passed:read",
        ("kept", "lower"): "written:out",
        ("lower", "write"): "written:out",
        ("write", "out"): "written:out",
    }


def test_what_leaves_a_filter_is_known_for_all_its_children_when_one_of_them_is_counted() -> None:
    builder = ks.StreamsBuilder()
    kept = builder.stream("in", **TEXTS, name="read").filter(lambda key, value: True, name="kept")
    kept.to("out", name="write")
    kept.flat_map_values(str.split, value=str, name="words").to("words", name="tell")
    found = kinds(builder.build())
    assert found["kept", "write"] == found["kept", "words"] == "written:out"
    assert found["words", "tell"] == "written:words"


def test_what_is_written_to_a_repartition_topic_is_counted_apart_from_results() -> None:
    builder = ks.StreamsBuilder()
    moved = builder.stream("in", **TEXTS, name="read").select_key(lambda key, value: value, key=str, name="rekey")
    moved.repartition(name="moved").to("out", name="write")
    found = kinds(builder.build())
    assert found["moved-repartition-sink", "moved-repartition"] == "repartitioned:moved-repartition"
    assert found["moved-repartition-filter", "moved-repartition-sink"] == "repartitioned:moved-repartition"
    assert found["write", "out"] == "written:out"


def test_branches_two_sinks_of_a_topic_and_merged_streams_are_counted_by_themselves() -> None:
    builder = ks.StreamsBuilder()
    one, other = builder.stream("a", **TEXTS, name="a"), builder.stream("b", **TEXTS, name="b")
    one.merge(other, name="both").flat_map_values(str.split, value=str, name="words").to("out", name="first")
    one.filter(lambda key, value: True, name="kept").to("out", name="second")
    found = kinds(builder.build())
    assert found["both", "words"] == "forwarded:both>words"
    assert found["kept", "second"] == found["second", "out"] == "forwarded:kept>second"
    assert found["first", "out"] == "forwarded:words>first"

    split = ks.StreamsBuilder()
    branches = split.stream("in", **TEXTS, name="read").split(name="choose-")
    branches.branch(lambda key, value: value > "m", name="late").default_branch(name="early")["choose-late"].to("late")
    found = kinds(split.build())
    assert found["read", "choose-"] == "passed:read"
    assert found["choose-", "choose-early"] == "forwarded:choose->choose-early"


def test_each_topic_of_a_source_that_reads_several_is_counted() -> None:
    builder = ks.StreamsBuilder()
    builder.stream(["a", "b"], **TEXTS, name="read").to("out", name="write")
    found = kinds(builder.build())
    assert (found["a", "read"], found["b", "read"]) == ("consumed:a", "consumed:b")


def test_every_wire_between_nodes_has_a_counter() -> None:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).flat_map_values(str.split, value=str)
    counts = words.group_by(lambda key, word: word, key=str).count()
    words.select_key(lambda key, word: word, key=str).join(counts, lambda word, count: f"{word} {count}", value=str).to(
        "out"
    )
    topology = builder.build()
    wires = {(parent, node.name) for node in topology.nodes.values() for parent in parents_of(node)}
    assert wires <= kinds(topology).keys()


def test_what_a_global_table_reads_is_counted() -> None:
    builder = ks.StreamsBuilder()
    builder.global_table("names", **TEXTS, name="names-table")
    [source] = builder.build().sub_topologies[0].sources
    assert kinds(builder.build())["names", source.name] == f"read:{source.name}"

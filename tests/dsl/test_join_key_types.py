"""Joins of keys that are never equal are refused when they are declared; `value=` is the type of the result."""

from __future__ import annotations

import uuid
from typing import NewType

import pytest

import kstreams as ks
from kstreams.dsl.analysis.facts import flow_types
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver

UserId = NewType("UserId", str)


def both(left, right):
    return f"{left}{right}"


def number_of(row: str) -> int:
    return int(row)


JOINS = {
    "two streams": lambda b, s: s.join(b.stream("o", key=int, value=str), both, windows=ks.JoinWindows.of(5)),
    "outer": lambda b, s: s.outer_join(b.stream("o", key=int, value=str), both, windows=ks.JoinWindows.of(5)),
    "a table": lambda b, s: s.left_join(b.table("o", key=int, value=str), both),
    "tables": lambda b, s: s.to_table().join(b.table("o", key=int, value=str), both),
    "outer tables": lambda b, s: s.to_table().outer_join(b.table("o", key=int, value=str), both),
    "a global table": lambda b, s: s.join(b.global_table("o", key=str, value=str), both, key_selector=lambda k, v: 1),
    "declared by the selector": lambda b, s: s.join(
        b.global_table("o", key=str, value=str), both, key_selector=keyed_by_number
    ),
    "a foreign key": lambda b, s: s.to_table().join(b.table("o", key=str, value=str), both, foreign_key=number_of),
    "an expression as foreign key": lambda b, s: s.to_table().join(
        b.table("o", key=int, value=str), both, foreign_key=ks.value
    ),
    "windows with plain keys": lambda b, s: (
        s.group_by_key().count().to_stream().join(s.group_by_key().windowed_by(ks.TimeWindows(size=5)).count(), both)
    ),
    "behind a repartition": lambda b, s: s.select_key(lambda k, v: 1, key=int).join(
        b.table("o", key=str, value=str), both, key=str
    ),
}


def keyed_by_number(key: str, value: str) -> int:
    return 1


UNKNOWN = {"a global table"}


@pytest.mark.parametrize("join", [key for key in JOINS if key not in UNKNOWN])
def test_keys_that_are_never_equal_are_refused(join):
    builder = ks.StreamsBuilder()
    with pytest.raises(
        TopologyError, match=r" at \S*test_join_key_types.py:\d+ joins keys of .* which are never equal: "
    ):
        JOINS[join](builder, builder.stream("in", key=str, value=str))


@pytest.mark.parametrize("join", sorted(UNKNOWN))
def test_keys_of_unknown_type_pass(join):
    builder = ks.StreamsBuilder()
    JOINS[join](builder, builder.stream("in", key=str, value=str))


@pytest.mark.parametrize("other", [str, UserId, str | None, int | str], ids=str)
def test_keys_that_can_be_equal_pass(other):
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).join(builder.table("o", key=other, value=str), both)


@pytest.mark.parametrize(("one", "other"), [(str, uuid.UUID), (bool, int), (bytes, str), (int, float)], ids=str)
def test_other_pairs_of_keys_that_never_meet(one, other):
    builder = ks.StreamsBuilder()
    with pytest.raises(TopologyError, match="never equal"):
        builder.stream("in", key=one, value=str).join(builder.table("o", key=other, value=str), both)


def test_default_serdes_are_known_when_the_topology_is_built():
    builder = ks.StreamsBuilder()
    builder.stream("in", value=str).join(builder.table("o", key=int, value=str), both, value=str).to("out")
    with pytest.raises(TopologyError, match="never equal"):
        builder.build({"default.key.serde": str})


RESULTS = {
    "two streams": lambda b, s: s.join(
        b.stream("o", key=str, value=int), both, windows=ks.JoinWindows.of(5), value=str
    ),
    "a table": lambda b, s: s.join(b.table("o", key=str, value=int), both, value=str),
    "a global table": lambda b, s: s.join(
        b.global_table("o", key=str, value=int), both, key_selector=lambda k, v: k, value=str
    ),
    "tables": lambda b, s: s.to_table().join(b.table("o", key=str, value=int), both, value=str).to_stream(),
    "a foreign key": lambda b, s: (
        s.to_table().join(b.table("o", key=str, value=int), both, foreign_key=lambda row: "k", value=str).to_stream()
    ),
}


@pytest.mark.parametrize("join", RESULTS.values(), ids=RESULTS)
def test_value_is_the_type_of_the_result(join):
    builder = ks.StreamsBuilder()
    joined = join(builder, builder.stream("in", key=str, value=float))
    assert flow_types(builder._graph.graph())[joined._node.name].value.kind is str
    joined.to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("o", key=str, value=int).pipe_input("k", 7, timestamp=1)
        driver.create_input_topic("in", key=str, value=float).pipe_input("k", 1.5, timestamp=2)
        assert driver.create_output_topic("out", key=str, value=str).read_values() == ["1.57"]


def test_a_global_table_knows_its_types():
    builder = ks.StreamsBuilder()
    stream, table = builder.stream("in", key=str, value=str), builder.global_table("o", key=str, value=str)
    with pytest.raises(TopologyError, match=r"other_value= belongs to a join with a KStream"):
        stream.join(table, both, key_selector=lambda k, v: k, other_value=str)

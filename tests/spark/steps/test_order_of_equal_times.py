"""Records of equal times that meet behind repartition topics: neither the size of steps nor the engine shows.

A step may end between any two records. Each record stands at the place of the source record that it follows from: its
time, its partition number, its topic, its offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.native.world import World
from tests.spark.steps_in_memory import Input, StepsInMemory, cut_anywhere

pytestmark = pytest.mark.spark

TEXTS: dict[str, Any] = {"key": str, "value": str}
TOPICS = dict.fromkeys(("a", "b", "c", "through", "out"), 2)
TIME = 10
TO_0, TO_1 = "b", "d"
"""Keys that go to the partitions 0 and 1."""

Build = Callable[[ks.StreamsBuilder], ks.KStream]


def keyed_by_value(builder: ks.StreamsBuilder, topic: str) -> ks.KStream:
    """The records of a topic, by the first letter of their values."""
    return builder.stream(topic, **TEXTS).map(lambda key, value: (value[0], value[1:]), **TEXTS)


def repartitioned_twice(builder: ks.StreamsBuilder) -> ks.KStream:
    """Each record goes through one partition to another, by the letters of its value."""
    once = keyed_by_value(builder, "a").repartition(name="once", **TEXTS)
    return once.map(lambda key, value: (value[0], value[1:]), **TEXTS).repartition(name="twice", **TEXTS)


def beside_a_topic(builder: ks.StreamsBuilder) -> ks.KStream:
    """A repartition topic, and a topic of the user."""
    return keyed_by_value(builder, "a").repartition(name="by-value", **TEXTS).merge(builder.stream("b", **TEXTS))


def beside_a_repartition_topic(builder: ks.StreamsBuilder) -> ks.KStream:
    """Two repartition topics."""
    first, second = (keyed_by_value(builder, topic).repartition(name=f"of-{topic}", **TEXTS) for topic in "ab")
    return first.merge(second)


def three_inputs(builder: ks.StreamsBuilder) -> ks.KStream:
    """Two repartition topics, and a topic of the user."""
    return beside_a_repartition_topic(builder).merge(builder.stream("c", **TEXTS))


def through_a_topic(builder: ks.StreamsBuilder) -> ks.KStream:
    """A topic that the topology writes and reads, and another topic."""
    keyed_by_value(builder, "a").to("through", **TEXTS)
    return builder.stream("through", **TEXTS).merge(builder.stream("b", **TEXTS))


def topology(build: Build) -> ks.Topology:
    """All values of a key, in the order in which one task takes them."""
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    taken = build(builder).group_by_key(**TEXTS).reduce(lambda values, value: f"{values} {value}")
    taken.to_stream().to("out", **TEXTS)
    return builder.build()


INPUTS: dict[Build, list[Input]] = {
    repartitioned_twice: [
        Input("a", 0, "k", f"{TO_1}{TO_0}first", TIME),
        Input("a", 1, "k", f"{TO_0}{TO_0}second", TIME),
    ],
    beside_a_topic: [
        Input("b", 0, TO_0, "first", TIME),
        Input("a", 1, "k", f"{TO_0}second", TIME),
    ],
    beside_a_repartition_topic: [
        Input("b", 0, "k", f"{TO_0}first", TIME),
        Input("a", 1, "k", f"{TO_0}second", TIME),
    ],
    three_inputs: [
        Input("b", 0, "k", f"{TO_0}first", TIME),
        Input("c", 0, TO_0, "second", TIME),
        Input("a", 1, "k", f"{TO_0}third", TIME),
        Input("a", 1, "k", f"{TO_0}fourth", TIME - 5),
    ],
}


def in_steps(build: Build, steps: Iterable[Sequence[Input]]) -> list[str | None]:
    """The results of the steps."""
    return [row.value for row in StepsInMemory(topology(build), TOPICS).run(steps) if row.topic == "out"]


def expected(inputs: Sequence[Input]) -> list[str]:
    """The values so far after each record, in the order of the inputs."""
    values = [row.value.lstrip(TO_0 + TO_1) for row in inputs]
    return [" ".join(values[: count + 1]) for count in range(len(values))]


@pytest.mark.parametrize("build", INPUTS, ids=lambda build: build.__name__)
def test_records_of_one_time_are_taken_in_the_order_of_their_sources_in_any_steps(build: Build) -> None:
    inputs = INPUTS[build]
    in_one_step = in_steps(build, [inputs])
    of_one_record_each = in_steps(build, cut_anywhere(inputs, range(len(inputs))))
    assert in_one_step == of_one_record_each == expected(inputs)


def test_records_of_a_topic_that_the_topology_writes_have_the_same_order() -> None:
    inputs = INPUTS[beside_a_topic]
    for cuts in [], [1]:
        assert in_steps(through_a_topic, cut_anywhere(inputs, cuts)) == expected(inputs)


@pytest.mark.parametrize("build", INPUTS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_native_run_takes_them_in_the_same_order(tmp_path: Path, build: Build, threads: int) -> None:
    world = World(tmp_path, **{"statestore.cache.max.bytes": 0})
    for topic in TOPICS:
        world.create(topic, 2)
        for partition in range(2):
            mine = [(row.key, row.value, row.time) for row in INPUTS[build] if row[:2] == (topic, partition)]
            world.write(topic, mine, partition)
    world.run(topology(build), num_stream_threads=threads)
    (written,) = [rows for rows in world.partitions("out") if rows]
    assert [value for _, value, _ in written] == expected(INPUTS[build])

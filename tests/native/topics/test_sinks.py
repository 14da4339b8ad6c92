"""Sinks and repartitions on the native engine: which topic and which partitions a record goes to (KIP-837)."""

from __future__ import annotations

from typing import Any

import kstreams as ks
from kstreams.kernel.murmur2 import murmur2
from tests.native.world import World

TEXTS = {"key": str, "value": str}


def values(world: World, topic: str) -> list[list[str]]:
    return [[row.value for row in partition] for partition in world.partitions(topic)]


def everywhere(topic: str, key: str, value: str, count: int) -> Any:
    """To all partitions, to none, or where the key belongs."""
    return {"all": range(count), "none": []}.get(value)


def test_a_partitioner_may_send_a_record_to_several_partitions_or_drop_it(world: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).to("out", partitioner=everywhere)
    world.create("in")
    world.create("out", 3)
    world.write("in", [("k", "all", 1), ("k", "none", 2), ("k", "by key", 3)])
    world.run(builder)
    home = (murmur2(b"k") & 0x7FFFFFFF) % 3
    assert values(world, "out") == [["all", "by key"] if partition == home else ["all"] for partition in range(3)]


def test_a_repartition_has_as_many_partitions_as_asked_and_its_own_partitioner(world: World) -> None:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS)
    words.repartition(name="wide", partitions=4, partitioner=lambda topic, key, value, count: count - 1).to("out")
    world.create("in")
    world.create("out", 4)
    world.write("in", [("k", "a", 1), ("l", "b", 2)])
    world.run(builder)
    assert values(world, "app-wide-repartition") == [[], [], [], ["a", "b"]]


def test_each_record_may_choose_its_topic(world: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).to(lambda key, value, context: f"{context.topic}-{value}")
    for topic in ("in", "in-a", "in-b"):
        world.create(topic)
    world.write("in", [("1", "a", 1), ("2", "b", 2), ("3", "a", 3)])
    world.run(builder)
    assert [row.key for row in world.rows("in-a")] == ["1", "3"]
    assert [row.key for row in world.rows("in-b")] == ["2"]

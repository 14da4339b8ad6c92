"""Topic, partition, offset and headers on the native engine: those of each record, whichever way its batch takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.kernel.batch import TopicPartition
from tests.native.world import World

TOPICS = ("one", "two")
PARTITIONS = 2
ROWS = 300
BY_COLUMNS, BY_RECORDS = 0, 10**9


def fill(world: World, *, with_headers: bool) -> None:
    """Records of all partitions whose times alternate, so that a task takes them in turn; values say where they lie."""
    for topic in TOPICS:
        world.create(topic, PARTITIONS)
    world.create("out")
    with world.log() as log, log.producer() as producer:
        for number in range(ROWS):
            for topic in TOPICS:
                for partition in range(PARTITIONS):
                    place = f"{topic}-{partition}@{number}".encode()
                    headers = [("place", b"not the last"), ("place", place)] if with_headers and number % 3 else []
                    time = 10 * number + (topic == "two") * (number % 7)
                    producer.send(topic, b"k", place, timestamp=time, partition=partition, headers=headers)


def values(world: World) -> list[str]:
    source, found = TopicPartition("out", 0), list[str]()
    with world.log() as log, log.consumer() as consumer:
        consumer.assign([source])
        end = consumer.end_offsets([source])[source]
        while consumer.position(source) < end:
            for batch in consumer.poll(0.1, 100_000):
                found += [value.decode() for value in batch.values.to_pylist()]
    return found


def place(record: ks.RecordWithMetadata[str, str]) -> str:
    assert record.header("place") in (None, record.value.encode())
    return f"{record.value} {record.topic}-{record.partition}@{record.offset}"


BY_EXPRESSION = ks.value + " " + ks.topic + "-" + ks.partition.cast(str) + "@" + ks.offset.cast(str)


def of_both(builder: ks.StreamsBuilder) -> ks.KStream[str, str]:
    return builder.stream(TOPICS, key=str, value=str)


def merged(builder: ks.StreamsBuilder) -> ks.KStream[str, str]:
    one, two = (builder.stream(topic, key=str, value=str) for topic in TOPICS)
    return one.merge(two)


WAYS: dict[str, Callable[[ks.StreamsBuilder], ks.KStream[str, Any]]] = {
    "expression": lambda builder: of_both(builder).map_values(BY_EXPRESSION),
    "function": lambda builder: of_both(builder).map_values(place, with_record=True),
    "merged": lambda builder: merged(builder).map_values(BY_EXPRESSION),
    "merged, function": lambda builder: merged(builder).map_values(place, with_record=True),
}


@pytest.mark.parametrize("with_headers", [False, True], ids=["bare", "with headers"])
@pytest.mark.parametrize("least", [BY_COLUMNS, BY_RECORDS], ids=["columns", "records"])
@pytest.mark.parametrize("way", WAYS)
def test_each_record_knows_its_own_place(way: str, least: int, with_headers: bool, tmp_path: Path) -> None:
    world, builder = World(tmp_path), ks.StreamsBuilder()
    fill(world, with_headers=with_headers)
    WAYS[way](builder).to("out", value=str)
    world.run(builder.build(), columns_min_rows=least)
    found = values(world)
    assert len(found) == ROWS * len(TOPICS) * PARTITIONS
    assert all(expected == actual for expected, actual in map(str.split, found))


@pytest.mark.parametrize("least", [BY_COLUMNS, BY_RECORDS], ids=["columns", "records"])
def test_a_filter_by_headers_goes_on_with_the_headers_of_the_records_that_pass(least: int, tmp_path: Path) -> None:
    world, builder = World(tmp_path), ks.StreamsBuilder()
    fill(world, with_headers=True)
    stream = builder.stream("one", key=str, value=str)
    stream.filter(ks.header("place").str.ends_with("7")).map_values(ks.header("place") + " " + ks.value).to("out")
    world.run(builder.build(), columns_min_rows=least)
    found = values(world)
    assert len(found) == PARTITIONS * sum(number % 3 != 0 and number % 10 == 7 for number in range(ROWS))
    assert all(header == value for header, value in map(str.split, found))

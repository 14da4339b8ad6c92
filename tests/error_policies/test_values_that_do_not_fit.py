"""A value that does not fit its declared type is refused where it is made, as the fault of its record."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pytest

import kstreams as ks
from kstreams.errors import KStreamsError
from kstreams.testing import TopologyTestDriver
from tests.native.world import World


class Reading(TypedDict):
    x: float | None


class Stat(msgspec.Struct, frozen=True):
    mean: float
    count: int


@dataclass
class MutableStat:
    mean: float
    count: int


ON = {
    "processing.exception.handler": "continue",
    "production.exception.handler": "continue",
    "errors.deadletterqueue.topic.name": "dead",
}
READINGS: list[float | None] = [1.0, None, math.inf, 3.0]
FIELDS: dict[str, Any] = {"mean": ks.col("x").mean(), "count": ks.len()}


def means(grouped: Any) -> Any:
    return grouped.aggregate(**FIELDS, value=Stat, materialized="stats").to_stream()


def windowed(grouped: Any) -> Any:
    table = grouped.windowed_by(ks.TimeWindows(size=1_000_000)).aggregate(**FIELDS, value=Stat, materialized="stats")
    return table.to_stream().select_key(lambda key, _: key.key, key=str)


def sessions(grouped: Any) -> Any:
    table = grouped.windowed_by(ks.SessionWindows(gap=1_000_000)).aggregate(**FIELDS, value=Stat, materialized="stats")
    return table.to_stream().select_key(lambda key, _: key.key, key=str)


def folded(grouped: Any) -> Any:
    return grouped.aggregate(
        lambda: Stat(0.0, 0), lambda key, reading, _: Stat(reading["x"], 1), value=Stat, materialized="stats"
    ).to_stream()


def folded_in_place(grouped: Any) -> Any:
    return grouped.aggregate(
        lambda: MutableStat(0.0, 0), lambda key, reading, _: MutableStat(reading["x"], 1), value=MutableStat
    ).to_stream()


def mapped(grouped: Any) -> Any:
    stream = ks.StreamsBuilder().stream("in", key=str, value=Reading)
    return stream.map_values(lambda reading: Stat(reading["x"], 1), value=Stat)


def application(build: Any, made: Any = Stat) -> ks.Topology:
    builder = ks.StreamsBuilder()
    build(builder.stream("in", key=str, value=Reading).group_by_key()).to("out", key=str, value=made)
    return builder.build()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


BUILDS = pytest.mark.parametrize("build", [means, windowed, sessions, folded, folded_in_place])


@BUILDS
@pytest.mark.parametrize("cache", [0, 1_000_000])
def test_the_record_at_fault_goes_to_the_dead_letters(build: Any, cache: int) -> None:
    topology = application(build, MutableStat if build is folded_in_place else Stat)
    with TopologyTestDriver(topology, {**ON, "statestore.cache.max.bytes": cache}) as driver:
        topic = driver.create_input_topic("in", key=str, value=Reading)
        for number, x in enumerate(READINGS):
            topic.pipe_input(str(number), {"x": x}, timestamp=10)
        out = driver.create_output_topic("out", key=str, value=Stat).read_key_values()
        dead = driver.create_output_topic("dead", key=str, value=Reading).read_key_values()
    assert out == [("0", Stat(1.0, 1)), ("2", Stat(math.inf, 1)), ("3", Stat(3.0, 1))]
    assert dead == [("1", {"x": None})]


@BUILDS
def test_without_handlers_the_error_names_operator_record_and_field(build: Any) -> None:
    topology = application(build, MutableStat if build is folded_in_place else Stat)
    with TopologyTestDriver(topology, {"statestore.cache.max.bytes": 0}) as driver:
        topic = driver.create_input_topic("in", key=str, value=Reading)
        topic.pipe_input("0", {"x": 1.0})
        with pytest.raises(KStreamsError, match=r"mean.* null|null.*mean"):
            topic.pipe_input("1", {"x": None})


@pytest.mark.parametrize("build", [means, windowed, sessions])
@pytest.mark.parametrize("rows", [1, 1_000_000], ids=["columns", "records"])
def test_columns_agree_with_records(world: World, build: Any, rows: int) -> None:
    world.create("in")
    world.create("dead")
    readings = [(str(n % 7), {"x": None if n in (3, 20) else float(n)}, n) for n in range(40)]
    with world.log() as log, log.producer() as producer:
        for key, reading, time in readings:
            producer.send("in", key.encode(), json.dumps(reading).encode(), timestamp=time)
    policies = {name.replace(".", "_"): value for name, value in ON.items()}
    world.run(application(build), once=True, columns_min_rows=rows, **policies)
    of_keys = {str(key): [float(n) for n in range(key, 40, 7) if n not in (3, 20)] for key in range(7)}
    nulls = {"6": 1}  # number 20 comes when there is a mean already; number 3 comes first, and is refused
    assert world.table("out", value=Stat) == {
        key: Stat(sum(numbers) / len(numbers), len(numbers) + nulls.get(key, 0)) for key, numbers in of_keys.items()
    }
    assert [row[:2] for row in world.rows("dead", value=Reading)] == [("3", {"x": None})]


@pytest.mark.parametrize("store", ["rocksDB", "in_memory"])
def test_nan_and_infinities_survive_stores_changelogs_and_restarts(world: World, store: str) -> None:
    def topology() -> ks.Topology:
        builder = ks.StreamsBuilder()
        table = builder.table("in", key=str, value=MutableStat, materialized="table")
        stream = builder.stream("ask", key=str, value=str)
        stream.join(table, lambda _, stat: stat, value=MutableStat).to("out")
        return builder.build()

    world.create("in")
    world.create("ask")
    numbers = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.5}
    with world.log() as log, log.producer() as producer:
        for key, number in numbers.items():
            raw = json.dumps({"mean": number, "count": 1}).encode()  # bare tokens, as Python's json writes them
            producer.send("in", key.encode(), raw, timestamp=1)
    settings = {"default_dsl_store": store}
    world.run(topology(), once=True, **settings)
    world.write("ask", [(key, "?", 2) for key in numbers])
    world.run(topology(), once=True, **settings)
    found = {key: stat.mean for key, stat in world.table("out", value=MutableStat).items()}
    assert math.isnan(found.pop("a"))
    assert found == {"b": math.inf, "c": -math.inf, "d": 1.5}
    changelog = world.table("app-table-changelog", value=Any)
    assert {key: row["mean"] for key, row in changelog.items()} == {
        "a": "NaN",
        "b": "Infinity",
        "c": "-Infinity",
        "d": 1.5,
    }

"""Stores of hand-made topologies on the native engine: what is lost comes back from where it is kept."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.state.restore import RestoreProgress
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.state import StoreBuilder
from kstreams.testing import TopologyTestDriver
from tests.native.world import WAIT_S, World
from tests.support.examples import few_of

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
HOMES = pytest.mark.parametrize("home", ["rocksdb", "memory"])


class Keep(ks.Processor):
    """Puts each record into the store `names`; those of a null key have no place there."""

    def init(self, context: Any) -> None:
        self.names = context.get_state_store("names")

    def process(self, record: Any) -> None:
        if record.key is not None:
            self.names.put(record.key, record.value)


class KeepInCapitals(Keep):
    def process(self, record: Any) -> None:
        super().process(record.with_value(record.value.upper()))


class Greet(ks.Processor):
    """Looks the key up in the store `names`."""

    def init(self, context: Any) -> None:
        self.context, self.names = context, context.get_state_store("names")

    def process(self, record: Any) -> None:
        self.context.forward(record.with_value(f"{record.value} {self.names.get(record.key)}"))


def greeting(home: str, **options: Any) -> tuple[ks.Topology, StoreBuilder]:
    topology = ks.Topology().add_source("in", "greetings", key=str, value=str)
    return topology, ks.Stores.key_value("names", key=str, value=str, store=home, **options)


def with_read_only_store(home: str = "rocksdb") -> ks.Topology:
    topology, names = greeting(home)
    topology.add_read_only_state_store(names, "names-in", "names", "keep", Keep, key=str, value=str)
    topology.add_processor("greet", Greet, "in", stores=["names"])
    return topology.add_sink("out", "out", "greet", key=str, value=str)


def run_watched(world: World, topology: ks.Topology, **settings: Any) -> list[RestoreProgress]:
    told: list[RestoreProgress] = []
    streams = KafkaStreams(topology, {**world.settings, **settings}, on_restore=told.append)
    streams.start(until_end=True)
    assert streams.wait(WAIT_S)
    return told


def write_names(world: World, suffix: str, count: int = 50) -> None:
    world.write("names", [(f"k{i}", f"n{i}{suffix}", 0) for i in range(count)])


def greeted(suffix: str, count: int = 50) -> dict[str, str]:
    return {f"k{i}": f"hi n{i}{suffix}" for i in range(count)}


@HOMES
@BOTH
def test_a_read_only_store_is_restored_from_its_topic(world: World, guarantee: str, home: str) -> None:
    settings = {"processing.guarantee": guarantee}
    world.create("names", 2)
    world.create("greetings", 2)
    write_names(world, "")
    assert run_watched(world, with_read_only_store(home), **settings) == []
    shutil.rmtree(world.folder / "state")
    world.write("names", [(None, "nobody", 1)])
    world.write("greetings", [(f"k{i}", "hi", i) for i in range(50)])
    told = run_watched(world, with_read_only_store(home), **settings)
    assert world.table("out") == greeted("")
    assert sum(p.total for p in {p.task: p for p in told}.values()) == 50
    assert not [topic for topic in world.topics() if topic.endswith("-changelog")]


def test_a_read_only_store_on_disk_reads_only_what_it_lacks(world: World) -> None:
    world.create("names")
    world.create("greetings")
    write_names(world, "")
    run_watched(world, with_read_only_store())
    shutil.copytree(world.folder / "state", world.folder / "kept")
    write_names(world, "!")
    run_watched(world, with_read_only_store())
    shutil.rmtree(world.folder / "state")
    shutil.copytree(world.folder / "kept", world.folder / "state")
    world.write("greetings", [(f"k{i}", "hi", i) for i in range(50)])
    told = run_watched(world, with_read_only_store())
    assert {p.total for p in told} == {50}
    assert world.table("out") == greeted("!")


@HOMES
def test_every_record_of_a_global_store_goes_through_its_processor_at_every_start(world: World, home: str) -> None:
    def topology() -> ks.Topology:
        topology, names = greeting(home, logging=False)
        topology.add_processor("greet", Greet, "in").add_sink("out", "out", "greet", key=str, value=str)
        return topology.add_global_store(names, "names-in", "names", "keep", KeepInCapitals, key=str, value=str)

    world.create("names", 3)
    world.create("greetings", 2)
    write_names(world, "x")
    for _ in range(2):
        world.write("greetings", [(f"k{i}", "hi", i) for i in range(50)])
        world.run(topology())
        assert world.table("out") == {f"k{i}": f"hi N{i}X" for i in range(50)}
    assert len(world.rows("out")) == 100


def test_the_dsl_reads_a_global_store_in_any_processor(world: World) -> None:
    world.create("names", 2)
    world.create("greetings", 2)
    write_names(world, "x")
    world.write("greetings", [(f"k{i}", "hi", i) for i in range(50)])
    builder = ks.StreamsBuilder()
    names = ks.Stores.key_value("names", key=str, value=str)
    builder.add_global_store(names, "names", KeepInCapitals, key=str, value=str)
    greetings = builder.stream("greetings", key=str, value=str)
    greetings.process(Greet, key=str, value=str).to("out")
    world.run(builder.build())
    assert world.table("out") == {f"k{i}": f"hi N{i}X" for i in range(50)}
    assert not [topic for topic in world.topics() if topic.endswith("-changelog")]


def test_a_global_store_answers_questions(world: World) -> None:
    world.create("names", 2)
    write_names(world, "x")
    builder = ks.StreamsBuilder()
    names = ks.Stores.key_value("names", key=str, value=str)
    builder.add_global_store(names, "names", KeepInCapitals, key=str, value=str)
    world.create("in")
    builder.stream("in", key=str, value=str).foreach(lambda key, value: None)
    with world.streams(builder.build(), poll_ms=5) as streams:
        streams.start()
        for _ in range(3000):
            streams.wait(0.01)
            if streams.state is State.RUNNING:
                break
        assert streams.store("names").get("k7") == "N7X"
        assert dict(streams.store("names").all()) == {f"k{i}": f"N{i}X" for i in range(50)}


class Count(ks.Processor):
    """Counts the records of each key in a store that it brings along."""

    @classmethod
    def stores(cls) -> list[Any]:
        return [ks.Stores.key_value("counts", key=str, value=int, logging={"segment.bytes": "1048576"})]

    def init(self, context: Any) -> None:
        self.context, self.counts = context, context.get_state_store("counts")

    def process(self, record: Any) -> None:
        count = (self.counts.get(record.key) or 0) + 1
        self.counts.put(record.key, count)
        self.context.metrics.add_sensor("counted").record()
        self.context.forward(record.with_value(count))


def counting() -> ks.Topology:
    topology = ks.Topology().add_source("in", "lines", key=str, value=str).add_processor("count", Count, "in")
    return topology.add_sink("out", "out", "count", key=str, value=int)


@BOTH
def test_a_store_of_a_processor_comes_back_from_its_changelog(world: World, guarantee: str) -> None:
    world.create("lines", 2)
    for run in range(1, 3):
        world.write("lines", [(f"k{i % 7}", "x", i) for i in range(70)])
        streams = world.run(counting(), processing_guarantee=guarantee)
        assert world.table("out", value=int) == {f"k{i}": 10 * run for i in range(7)}
        assert world.table("app-counts-changelog", value=int) == world.table("out", value=int)
        assert streams.sensors()["count", "counted"].count == 70
        shutil.rmtree(world.folder / "state")


def test_settings_of_a_changelog_reach_the_topic(world: World) -> None:
    world.create("lines")
    world.run(counting())
    with world.log() as log, log.admin() as admin:
        config = admin.describe_topic("app-counts-changelog").config
    assert config["segment.bytes"] == "1048576"
    assert config["cleanup.policy"] == "compact"


def test_a_processor_may_ask_for_a_commit(world: World) -> None:
    class Committing(ks.Processor):
        def init(self, context: Any) -> None:
            self.context = context

        def process(self, record: Any) -> None:
            self.context.forward(record)
            self.context.commit()

    world.create("in")
    world.write("in", [("k", "v", 1)])
    topology = ks.Topology().add_source("in", "in", key=str, value=str).add_processor("commit", Committing, "in")
    topology.add_sink("out", "out", "commit", key=str, value=str)
    never = {"commit_interval_ms": 10**9, "processing_guarantee": "exactly_once_v2"}
    with world.streams(topology, poll_ms=5, **never) as streams:
        streams.start()
        for _ in range(3000):
            streams.wait(0.01)
            if "out" in world.topics() and world.rows("out"):
                break
        assert [row.value for row in world.rows("out")] == ["v"]


class Highest:
    """A store of the user's own: the highest number of each key."""

    def __init__(self, log: Any) -> None:
        self.log, self.numbers = log, {}

    def offer(self, key: str, number: int) -> None:
        if number > self.numbers.get(key, -1):
            self.numbers[key] = number
            self.log(key.encode(), str(number).encode())

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        self.numbers[key.decode()] = int(value or 0)


def stores_of_every_kind(home: str) -> list[StoreBuilder]:
    kinds = {"key": str, "value": int, "store": home}
    return [
        ks.Stores.key_value("plain", **kinds),
        ks.Stores.timestamped_key_value("timestamped", **kinds),
        ks.Stores.window("window", 1_000, 10, **kinds),
        ks.Stores.timestamped_window("timestamped-window", 1_000, 10, **kinds),
        ks.Stores.window("duplicates", 1_000, 10, retain_duplicates=True, **kinds),
        ks.Stores.session("session", 1_000, **kinds),
        ks.Stores.versioned("versioned", 1_000, **kinds),
        ks.Stores.lru_map("lru", 100, key=str, value=int),
        ks.Stores.custom("custom", Highest),
    ]


class UseThemAll(ks.Processor):
    """Writes each record into stores of every kind, and tells what they then hold of its key."""

    def init(self, context: Any) -> None:
        self.context = context
        self.stores = {store.name: context.get_state_store(store.name) for store in stores_of_every_kind("memory")}

    def process(self, record: Any) -> None:
        key, number, time, stores = record.key, len(record.value), record.timestamp, self.stores
        held = stores["plain"].get(key) or 0
        stores["plain"].put(key, held + number if number else None)
        stores["timestamped"].put(key, ks.ValueAndTimestamp(number, time))
        stores["window"].put(key, number or None, time // 10 * 10)
        stores["timestamped-window"].put(key, ks.ValueAndTimestamp(number, time), time // 10 * 10)
        stores["duplicates"].put(key, number, time // 10 * 10)
        stores["session"].put(ks.Windowed(key, ks.Window(time // 10 * 10, time // 10 * 10 + number)), number)
        stores["versioned"].put(key, number or None, time)
        stores["lru"].put(key, number)
        stores["custom"].offer(key, number)
        self.context.forward(record.with_value(repr(self.told(key, time))))

    def told(self, key: str, time: int) -> list[Any]:
        stores, from_ms = self.stores, time - 1_000
        return [
            *(stores[name].get(key) for name in ("plain", "timestamped", "lru")),
            *(list(stores[name].fetch(key, from_ms, time)) for name in ("window", "timestamped-window", "duplicates")),
            list(stores["session"].fetch(key)),
            [stores["versioned"].get(key), stores["versioned"].get(key, time - 50)],
            stores["custom"].numbers.get(key),
        ]


def using_them_all(home: str) -> ks.Topology:
    topology = ks.Topology().add_source("in", "in", key=str, value=str).add_processor("use", UseThemAll, "in")
    for store in stores_of_every_kind(home):
        topology.add_state_store(store, "use")
    return topology.add_sink("out", "out", "use", key=str, value=str)


@HOMES
@BOTH
@pytest.mark.parametrize("lost", few_of([True, False], 1), ids=["restored", "reopened"])
def test_stores_of_every_kind_go_on_as_if_nothing_had_happened(
    world: World, home: str, guarantee: str, lost: bool
) -> None:
    rows = [(f"k{i % 3}", "x" * (i * 7 % 5), i * 13 % 400) for i in range(120)]
    world.create("in")
    for start in range(0, len(rows), 40):
        world.write("in", rows[start : start + 40])
        world.run(using_them_all(home), processing_guarantee=guarantee)
        if lost:
            shutil.rmtree(world.folder / "state")
    with TopologyTestDriver(using_them_all(home)) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_records(ks.Record(key=key, value=value, timestamp=time) for key, value, time in rows)
        records = driver.create_output_topic("out", key=str, value=str).read_records()
    assert [row.value for row in world.rows("out")] == [record.value for record in records]

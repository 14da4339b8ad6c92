"""History on several partitions, and applications that read it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

import kstreams as ks
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import World

HOUR_MS, MINUTE_MS = 3_600_000, 60_000
YEAR_MS = 365 * 24 * HOUR_MS
SETTINGS = {"commit.interval.ms": 50, "statestore.cache.max.bytes": 0}


@cache  # instances in one process share the tasks of one topology
def hourly_counts() -> ks.Topology:
    """Readings counted by their sensor and hour; what is more than ten minutes late does not count."""
    builder = ks.StreamsBuilder()
    readings = builder.stream("readings", key=str, value=str).group_by(lambda _, sensor: sensor, key=str)
    counts = readings.windowed_by(ks.TimeWindows(size=HOUR_MS, grace=10 * MINUTE_MS)).count(materialized="counts")
    named = counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str)
    named.to("counts", key=str, value=int)
    return builder.build()


def behind_two_repartitions() -> ks.Topology:
    """Readings moved to their sensor, then to all sensors together, and counted without grace."""
    builder = ks.StreamsBuilder()
    moved = builder.stream("readings", key=str, value=str).select_key(lambda _, sensor: sensor, key=str).repartition()
    grouped = moved.group_by(lambda sensor, _: sensor[-1], key=str)
    counts = grouped.windowed_by(ks.TimeWindows(size=10_000, grace=0)).count(materialized="counts")
    named = counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str)
    named.to("counts", key=str, value=int)
    return builder.build()


def in_order_only(fails: Fails) -> ks.Topology:
    """Readings counted by windows without grace: one that is out of order is late."""
    builder = ks.StreamsBuilder()
    named = builder.stream("readings", key=str, value=str).peek(lambda *_: fails("writer"))
    readings = named.group_by(lambda _, sensor: sensor, key=str)
    counts = readings.windowed_by(ks.TimeWindows(size=10_000, grace=0)).count(materialized="counts")
    behind = counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str)
    behind.process(Committing).peek(lambda *_: fails("reader")).to("counts", key=str, value=int)
    return builder.build()


class Committing(ks.Processor):
    """Asks for a commit behind every record."""

    def init(self, context: ks.ProcessorContext) -> None:
        self.context = context

    def process(self, record: ks.Record[str, int]) -> None:
        self.context.forward(record)
        self.context.commit()


class Fails:
    """Raises an error at the calls whose numbers are given, by who calls."""

    def __init__(self, **calls: Collection[int]) -> None:
        self._at, self._calls = calls, Counter[str]()

    def __call__(self, caller: str) -> None:
        self._calls[caller] += 1
        if self._calls[caller] in self._at.get(caller, ()):
            raise ValueError(f"call {self._calls[caller]}")


def a_year(records: int, seed: int = 1) -> list[tuple[str, str, int]]:
    """In order of arrival, each up to five minutes late."""
    rng = random.Random(seed)
    steps = (at * YEAR_MS // records for at in range(1, records + 1))
    return [("k", f"sensor {rng.randrange(5)}", at - rng.randrange(5 * MINUTE_MS)) for at in steps]


def skewed(rows: list[tuple[str, str, int]], seed: int = 2) -> list[list[tuple[str, str, int]]]:
    """The rows on four partitions, of which the first has most."""
    rng, found = random.Random(seed), [[], [], [], []]
    for row in rows:
        found[rng.choices(range(4), (80, 15, 4, 1))[0]].append(row)
    return found


def world_of(folder: Path, partitions: list[list[tuple[str, str, int]]], **settings: Any) -> World:
    """Topics with the readings of each partition."""
    world = World(folder, **SETTINGS, **settings)
    world.create("readings", len(partitions))
    world.create("counts", 1)
    for number, rows in enumerate(partitions):
        world.write("readings", rows, number)
    return world


def counted(world: World) -> int:
    return sum(world.table("counts", value=int).values())


def dropped(running: list[KafkaStreams]) -> int:
    return sum(sum(streams.progress().dropped.values()) for streams in running)

"""Topologies by hand on Spark: processors, their own stores, global and read-only stores, from step to step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.running import Application, Row, changelog

pytestmark = pytest.mark.spark

TYPES = {"names": (str, str), "cities": (str, str), "visits": (str, str), "out": (str, str)}
ROWS = [
    Row("names", "a", "ann", 0),
    Row("names", "b", "bob", 1),
    Row("cities", "a", "york", 2),
    Row("visits", "a", "x", 3),
    Row("visits", "b", "y", 4),
    Row("cities", "b", "rome", 5),
    Row("visits", "b", "z", 6),
    Row("visits", "a", "x", 7),
]


class Keep(ks.Processor):
    """Puts records into the store of its name."""

    def __init__(self, store: str) -> None:
        self.store = store

    def init(self, context: Any) -> None:
        self.rows = context.get_state_store(self.store)

    def process(self, record: Any) -> None:
        self.rows.put(record.key, record.value)


class Total:
    """A store of the user's own: how many visits there were of each key."""

    def __init__(self, log: Any) -> None:
        self.log, self.counts = log, {}

    def add(self, key: str) -> int:
        self.counts[key] = self.counts.get(key, 0) + 1
        self.log(key.encode(), str(self.counts[key]).encode())
        return int(self.counts[key])

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        self.counts[key.decode()] = int(value or 0)


class Visit(ks.Processor):
    """Tells of each visit by whom it was, from where, the how manieth, and how many of it in the last 10 ms."""

    @classmethod
    def stores(cls) -> list[Any]:
        recent = ks.Stores.window("recent", retention=10, size=1, key=str, value=str)
        return [ks.Stores.custom("totals", Total), recent, ks.Stores.lru_map("seen", 1, key=str, value=str)]

    def init(self, context: Any) -> None:
        self.context = context
        stores = ("names", "cities", "totals", "recent", "seen")
        self.names, self.cities, self.totals, self.recent, self.seen = map(context.get_state_store, stores)

    def process(self, record: Any) -> None:
        key, time = record.key, record.timestamp
        self.recent.put(key, record.value, time)
        near = len(list(self.recent.fetch(key, time - 10, time)))
        told = [self.names.get(key), self.cities.get(key), self.totals.add(key), near, self.seen.get(key)]
        self.seen.put(key, record.value)
        self.context.forward(record.with_value(" ".join(map(str, told))))


def visits() -> ks.Topology:
    names, cities = (ks.Stores.key_value(name, key=str, value=str) for name in ("names", "cities"))
    topology = ks.Topology().add_global_store(
        names, "names-in", "names", "names-keep", lambda: Keep("names"), key=str, value=str
    )
    topology.add_read_only_state_store(
        cities, "cities-in", "cities", "cities-keep", lambda: Keep("cities"), key=str, value=str
    )
    topology.add_source("in", "visits", key=str, value=str).add_processor("visit", Visit, "in", stores=["cities"])
    return topology.add_sink("out", "out", "visit", key=str, value=str)


def test_a_topology_by_hand_gives_what_the_driver_gives(spark: Any, tmp_path: Path) -> None:
    application = Application(spark, tmp_path, visits(), TYPES).create("names", "cities", "visits", partitions=1)
    application.write(ROWS).run()
    assert changelog(application.rows("out")) == changelog(application.driver_rows("out", ROWS))


def test_all_stores_go_on_in_a_later_run(spark: Any, tmp_path: Path) -> None:
    application = Application(spark, tmp_path, visits(), TYPES).create("names", "cities", "visits", partitions=2)
    application.write(ROWS).run(until_end=False)
    more = [Row("names", "a", "amy", 8), Row("visits", "a", "x", 9), Row("visits", "b", "y", 9)]
    application.write(more).run(**{"spark.kstreams.max.records": 1, "spark.kstreams.snapshot.every": 1})
    assert application.table("out") == {"a": "amy york 3 3 x", "b": "bob rome 3 3 None"}  # the map of one key has a

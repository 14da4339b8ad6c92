"""Keys that cannot be hashed, as Debezium's `{"id": 1}`: in joins, tables and stores of every kind, and when asked."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import quote

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.serdes import serde_of
from tests.native.world import World, until
from tests.server.served import served


@dataclass
class Id:
    id: int


class IdDict(TypedDict):
    id: int


KINDS: dict[Any, Any] = {
    Id: Id,
    IdDict: lambda number: {"id": number},
    dict[str, int]: lambda number: {"id": number},
    list[int]: lambda number: [number],
}
OF_EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=str)


def raw(kind: Any, number: int) -> bytes:
    """A key as another program may write it."""
    return json.dumps([number] if kind == list[int] else {"id": number}).encode()


def application(kind: Any) -> ks.Topology:
    builder = ks.StreamsBuilder()
    names = builder.table("names", key=kind, value=str, materialized="names")
    everybody = builder.global_table("everybody", key=kind, value=str, materialized="everybody")
    visits = builder.stream("visits", key=kind, value=int)
    grouped = visits.group_by_key()
    grouped.count(ks.Materialized("counts", queryable=True))
    grouped.windowed_by(ks.TimeWindows(size=10, grace=0)).count("windows")
    grouped.windowed_by(ks.SessionWindows(gap=10, grace=0)).count("sessions")
    grouped.windowed_by(ks.SlidingWindows(difference=10, grace=0)).count("slides")
    visits.group_by(lambda key, value: KINDS[kind](value), key=kind).count(ks.Materialized("by-value", queryable=True))
    joined = visits.join(names, lambda value, name: f"{name}{value}", value=str)
    joined = joined.join(everybody, lambda value, name: value + name, key_selector=lambda key, _: key, value=str)
    joined.to("out", key=kind, value=str)
    return builder.build({"topology.optimization": "reuse.ktable.source.topics"})


def filled(world: World, kind: Any) -> World:
    for topic in ("names", "everybody", "visits"):
        world.create(topic, 2)
    for topic, name in (("names", "Name"), ("everybody", "Body")):
        world.write(topic, [(raw(kind, number), f"{name}{number}", 0) for number in range(4)])
    return world


def visit(world: World, kind: Any, value: int) -> None:
    world.write("visits", [(raw(kind, number), value, 100 * value) for number in range(4)])


def rows(world: World, kind: Any) -> list[tuple[Any, str]]:
    return sorted((str(row.key), row.value) for row in world.rows("out", kind))


@OF_EACH_KIND
@pytest.mark.parametrize("lost", [False, True], ids=["state kept", "state lost"])
def test_joins_and_tables_after_a_restart(world: World, kind: Any, lost: bool) -> None:
    filled(world, kind)
    visit(world, kind, 1)
    world.run(application(kind), once=True)
    if lost:
        shutil.rmtree(world.folder / "state")
    visit(world, kind, 2)
    world.run(application(kind), once=True)
    of = KINDS[kind]
    assert rows(world, kind) == sorted(
        (str(of(number)), f"Name{number}{value}Body{number}") for number in range(4) for value in (1, 2)
    )
    counts = world.rows("app-counts-changelog", kind, int)
    assert sorted((str(row.key), row.value) for row in counts) == sorted(
        (str(of(number)), count) for number in range(4) for count in (1, 2)
    )


@OF_EACH_KIND
@pytest.mark.parametrize("store", ["rocksDB", "in_memory"])
def test_stores_are_asked(world: World, kind: Any, store: str) -> None:
    filled(world, kind)
    visit(world, kind, 1)
    visit(world, kind, 1)
    key, shown = KINDS[kind](2), KINDS[kind](2) if kind is not Id else {"id": 2}
    with served(world, application(kind), default_dsl_store=store, commit_interval_ms=10) as (client, streams):
        until(lambda: streams.state is State.RUNNING)
        until(lambda: (row := streams.store("counts").get(key)) is not None and row.value == 2)
        counts: Any = streams.store("counts")
        assert {str(each) for each, _ in counts.all()} == {str(KINDS[kind](number)) for number in range(4)}
        assert streams.store("names").get(key).value == "Name2"
        assert [row.value for _, row in streams.store("windows").fetch(key, 0, 1_000)] == [2]
        assert [value for _, value in streams.store("sessions").fetch(key)] == [2]
        target = "/v1/stores/counts/keys/" + quote(json.dumps(shown), safe="")
        until(lambda: client.rows(target) == [{"key": shown, "value": 2, "timestamp": 100}])
        of_value = json.loads(serde_of(kind).serialize(KINDS[kind](1)))
        until(lambda: [row["key"] for row in client.rows("/v1/stores/by-value/rows")] == [of_value])
        part = "key[1]" if kind == list[int] else "key.id"
        found = streams.sql(f"SELECT {part} AS id, value FROM counts WHERE {part} = 2")
        assert found.to_pylist() == [{"id": 2, "value": 2}]

"""A topology that has changed since its last run goes on with what it finds, or refuses to start."""

from __future__ import annotations

import shutil

import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from tests.native.world import World

TEXTS = {"key": str, "value": str}
ROWS = [("a", "x", 1), ("b", "y", 2), ("a", "z", 3)]


def count(store: str = "counts", *, first: bool = False, also: str | None = None) -> ks.Topology:
    """Counts of `lines`; `first`: another sub-topology before it, `also`: another store beside it."""
    builder = ks.StreamsBuilder()
    if first:
        builder.stream("other", **TEXTS).to("copy")
    words = builder.stream("lines", **TEXTS).group_by_key()
    words.count(store).to_stream().to("counts")
    if also is not None:
        words.reduce(max, materialized=also)
    return builder.build()


@pytest.fixture
def ran(world: World) -> World:
    """A world in which `count()` has run."""
    world.create("lines")
    world.create("other")
    world.write("lines", ROWS)
    world.run(count(), once=True)
    return world


def goes_on(world: World, topology: ks.Topology) -> dict[str, int]:
    world.write("lines", [("a", "more", 4)])
    world.run(topology, once=True)
    return world.table("counts", value=int)


def test_an_unchanged_topology_goes_on(ran: World) -> None:
    assert goes_on(ran, count()) == {"a": 3, "b": 1}


def test_an_added_and_then_removed_store_goes_on(ran: World, caplog: pytest.LogCaptureFixture) -> None:
    assert goes_on(ran, count(also="highest")) == {"a": 3, "b": 1}
    assert "the topology has changed: store 'highest' is added" in caplog.text
    assert goes_on(ran, count()) == {"a": 4, "b": 1}
    assert "store 'highest' is removed" in caplog.text


def test_a_renamed_store_is_refused_before_anything_is_touched(ran: World) -> None:
    topics = ran.topics()
    with pytest.raises(TopologyError, match="store 'counts' is renamed to 'totals'"):
        goes_on(ran, count("totals"))
    assert ran.topics() == topics
    assert goes_on(ran, count()) == {"a": 4, "b": 1}


def test_a_retyped_store_is_refused(ran: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("lines", **TEXTS).group_by_key().reduce(max, materialized="counts")
    with pytest.raises(TopologyError, match=r"store 'counts' holds another type of value: IntSerde\(\) -> StringSerde"):
        ran.run(builder.build())


@pytest.mark.parametrize("logging", [True, False])
def test_a_store_follows_its_sub_topology_to_another_id(world: World, logging: bool) -> None:
    def topology(first: bool) -> ks.Topology:
        builder = ks.StreamsBuilder()
        if first:
            builder.stream("other", **TEXTS).to("copy")
        kept = ks.Materialized("counts", logging=logging)
        builder.stream("lines", **TEXTS).group_by_key().count(kept).to_stream().to("counts")
        return builder.build()

    world.create("lines")
    world.create("other")
    world.write("lines", ROWS)
    world.run(topology(False), once=True)
    assert goes_on(world, topology(True)) == {"a": 3, "b": 1}
    assert (world.folder / "state" / "app" / "1_0").is_dir()
    assert goes_on(world, topology(False)) == {"a": 4, "b": 1}


def test_stores_that_exchange_ids_exchange_folders(world: World) -> None:
    def topology(*topics: str) -> ks.Topology:
        builder = ks.StreamsBuilder()
        for topic in topics:
            kept = ks.Materialized(f"of-{topic}", logging=False)
            builder.stream(topic, **TEXTS).group_by_key().count(kept).to_stream().to(f"{topic}-counts")
        return builder.build()

    for topic in ("one", "two"):
        world.create(topic)
        world.write(topic, ROWS if topic == "one" else ROWS[:1])
    world.run(topology("one", "two"), once=True)
    for topic in ("one", "two"):
        world.write(topic, [("a", "more", 5)])
    world.run(topology("two", "one"), once=True)
    assert world.table("one-counts", value=int) == {"a": 3, "b": 1}
    assert world.table("two-counts", value=int) == {"a": 2}


def test_a_repartition_may_go_once_it_is_processed(world: World) -> None:
    def topology(again: bool) -> ks.Topology:
        builder = ks.StreamsBuilder()
        words = builder.stream("lines", **TEXTS)
        words = words.repartition(name="again") if again else words
        words.group_by_key().count("counts").to_stream().to("counts")
        return builder.build()

    world.create("lines")
    world.write("lines", ROWS)
    world.run(topology(True), once=True)
    assert goes_on(world, topology(False)) == {"a": 3, "b": 1}


def test_an_application_that_has_processed_nothing_may_change_as_it_likes(world: World) -> None:
    world.create("lines")
    world.run(count("first"), once=True)
    world.write("lines", ROWS)
    world.run(count("second"), once=True)
    assert world.table("counts", value=int) == {"a": 2, "b": 1}


def test_state_without_a_description_is_taken_as_it_is(ran: World) -> None:
    (ran.folder / "state" / "app" / "topology.json").unlink()
    assert goes_on(ran, count()) == {"a": 3, "b": 1}


def test_lost_state_is_restored_and_described_anew(ran: World) -> None:
    shutil.rmtree(ran.folder / "state")
    assert goes_on(ran, count()) == {"a": 3, "b": 1}
    assert (ran.folder / "state" / "app" / "topology.json").exists()

"""Input that was deleted before it was read is not skipped in silence: an error where state needs it, else counted."""

from __future__ import annotations

from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log.api import OffsetAndMetadata
from tests.native.stepped import stepped
from tests.native.world import World

TEXTS = {"key": str, "value": str}
DELETED = "deleted before it was read"
IN = TopicPartition("in", 0)


def copied(**source: Any) -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS, **source).to("out")
    return builder.build()


def counted(**source: Any) -> ks.Topology:
    builder = ks.StreamsBuilder()
    counts = builder.stream("in", **TEXTS, **source).group_by_key().count()
    counts.to_stream().to("out", key=str, value=int)
    return builder.build()


def counted_by_value(**source: Any) -> ks.Topology:
    """The state lies behind a repartition topic, in another sub-topology."""
    builder = ks.StreamsBuilder()
    counts = builder.stream("in", **TEXTS, **source).group_by(lambda key, value: value, key=str).count()
    counts.to_stream().to("out", key=str, value=int)
    return builder.build()


def rows(count: int, start: int = 0) -> list[tuple[str, str, int]]:
    return [(f"k{i % 3}", f"v{i}", i) for i in range(start, start + count)]


def delete(world: World, before: int) -> None:
    with world.log() as log, log.admin() as admin:
        admin.delete_records({IN: before})


@pytest.fixture
def behind(world: World) -> Any:
    """A world in which an application has read 3 records, and 2 of the next 5 were deleted since."""

    def run(topology: ks.Topology) -> World:
        world.create("in")
        world.write("in", rows(3))
        world.run(topology, once=True)
        world.write("in", rows(5, start=3))
        delete(world, 5)
        return world

    return run


@pytest.mark.parametrize("build", [counted, counted_by_value])
def test_with_state_behind_it_the_run_ends_with_both_offsets_and_the_ways_on(behind: Any, build: Any) -> None:
    world = behind(build())
    with pytest.raises(LogError, match=r"in-0 was deleted up to offset 5, .* read it only up to offset 3") as error:
        world.run(build(), once=True)
    for way in ("retention.ms", "--reset", "consumer.auto.offset.reset", "offset_reset="):
        assert way in str(error.value)


def test_without_state_it_goes_on_and_the_records_count_as_dropped(behind: Any) -> None:
    world = behind(copied())
    streams = world.run(copied(), once=True)
    assert streams.progress().dropped == {("KSTREAM-SOURCE-0000000000", DELETED): 2}
    assert [row.value for row in world.rows("out")] == ["v0", "v1", "v2", "v5", "v6", "v7"]
    assert world.run(copied(), once=True).progress().dropped == {}


@pytest.mark.parametrize("said", [{"offset_reset": "earliest"}, {}])
def test_earliest_from_the_user_says_that_records_may_be_missing(behind: Any, said: Any) -> None:
    world = behind(counted(**said))
    settings = {} if said else {"consumer.auto.offset.reset": "earliest"}
    streams = world.run(counted(**said), once=True, **settings)
    assert streams.progress().dropped == {("KSTREAM-SOURCE-0000000000", DELETED): 2}
    assert world.table("out", value=int) == {"k0": 2, "k1": 2, "k2": 2}


def test_latest_drops_all_that_is_there(behind: Any) -> None:
    world = behind(counted())
    streams = world.run(counted(offset_reset="latest"), once=True)
    assert streams.progress().dropped == {("KSTREAM-SOURCE-0000000000", DELETED): 5}


def test_none_is_an_error_without_state_too(behind: Any) -> None:
    world = behind(copied())
    with pytest.raises(LogError, match="up to offset 5, but the application has read it only up to offset 3"):
        world.run(copied(offset_reset="none"), once=True)


def test_a_running_application_says_so_as_well(world: World) -> None:
    world.create("in")
    with stepped(world, counted(), ManualClock()) as app:
        world.write("in", rows(3))
        app.work()
        world.write("in", rows(5, start=3))
        delete(world, 5)
        with pytest.raises(LogError, match="up to offset 5, but the application has read it only up to offset 3"):
            app.work()


def test_a_running_application_without_state_counts_what_it_missed(world: World) -> None:
    world.create("in")
    with stepped(world, copied(), ManualClock()) as app:
        world.write("in", rows(3))
        app.work()
        world.write("in", rows(5, start=3))
        delete(world, 5)
        app.work()
        (task,) = app.thread.tasks
        assert task.task.dropped == {("KSTREAM-SOURCE-0000000000", DELETED): 2}
        assert task.next_offsets == {IN: 8}
    assert [row.value for row in world.rows("out")] == ["v0", "v1", "v2", "v5", "v6", "v7"]


def test_what_the_application_itself_purges_from_repartition_topics_is_not_lost(world: World) -> None:
    world.create("in")
    purging = {"repartition_purge_interval_ms": 0, "commit_interval_ms": 0, "max_poll_records": 10}
    for start in (0, 100, 200):
        world.write("in", rows(100, start))
        assert world.run(counted_by_value(), once=True, **purging).progress().dropped == {}
    with world.log() as log, log.admin() as admin:
        (repartition,) = (name for name in admin.topics() if name.endswith("-repartition"))
        assert admin.beginning_offsets([TopicPartition(repartition, 0)])[TopicPartition(repartition, 0)] > 0
    assert len(world.table("out", value=int)) == 300


def test_a_committed_offset_behind_the_end_is_an_error(world: World) -> None:
    world.create("in")
    world.write("in", rows(2))
    with world.log() as log, log.admin() as admin:
        admin.commit("app", {IN: OffsetAndMetadata(3)})
    with pytest.raises(LogError, match=r"processed in-0 up to offset 3, but the topic ends at 2: .*created anew"):
        world.run(copied(), once=True)

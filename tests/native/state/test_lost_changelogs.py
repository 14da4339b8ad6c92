"""A changelog that lost records is refused: counts never begin again in silence."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.native.engine import reset
from tests.native.world import World

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
CHANGELOG = "app-counts-changelog"


def counting(passes: str = "") -> ks.Topology:
    """Counts the records whose value begins with some text."""
    builder = ks.StreamsBuilder()
    kept = builder.stream("in", key=str, value=str).filter(lambda _, value: value.startswith(passes))
    kept.group_by_key().count(materialized="counts").to_stream().to("out", key=str, value=int)
    return builder.build()


def records(count: int) -> list[tuple[str, str, int]]:
    return [(f"k{n % 5}", f"v{n}", n) for n in range(count)]


def counted(world: World, guarantee: str, **more: Any) -> None:
    world.create("in")
    world.write("in", records(50))
    world.run(counting(**more), once=True, processing_guarantee=guarantee)


def refused(world: World, guarantee: str, match: str) -> None:
    world.write("in", records(5))
    with pytest.raises(StateError, match=match):
        world.run(counting(), once=True, processing_guarantee=guarantee)


@BOTH
@pytest.mark.parametrize("with_state", [False, True], ids=["state deleted", "state kept"])
def test_a_changelog_that_was_deleted_is_refused(world: World, guarantee: str, with_state: bool) -> None:
    counted(world, guarantee)
    with world.log() as log, log.admin() as admin:
        admin.delete_topic(CHANGELOG)
    if not with_state:
        shutil.rmtree(world.folder / "state")
    for _ in range(2):
        refused(world, guarantee, "ends at offset 0, but was written up to .* from a copy of the log, or .*--reset")
    assert world.table("out", value=int) == {f"k{n}": 10 for n in range(5)}
    reset(counting(), Config.of(world.settings))
    world.run(counting(), once=True, processing_guarantee=guarantee)
    assert world.table("out", value=int) == {f"k{n}": 12 for n in range(5)}


@BOTH
def test_a_changelog_that_was_emptied_is_refused(world: World, guarantee: str) -> None:
    counted(world, guarantee)
    with world.log() as log, log.admin() as admin:
        source = TopicPartition(CHANGELOG, 0)
        admin.delete_records(admin.end_offsets([source]))
    shutil.rmtree(world.folder / "state")
    refused(world, guarantee, "begins at offset .*--reset")


@BOTH
def test_a_changelog_that_is_shorter_than_what_was_committed_is_refused(world: World, guarantee: str) -> None:
    counted(world, guarantee)
    rows = world.rows(CHANGELOG, value=bytes)
    with world.log() as log, log.admin() as admin:
        config = {"cleanup.policy": admin.describe_topic(CHANGELOG).config["cleanup.policy"]}
        admin.delete_topic(CHANGELOG)
        admin.create_topic(CHANGELOG, 1, config)
    world.write(CHANGELOG, [(row.key, row.value, row.timestamp) for row in rows[:-1]])
    shutil.rmtree(world.folder / "state")
    refused(world, guarantee, f"ends at offset {len(rows) - 1}, but was written up to")


@BOTH
def test_a_store_that_never_wrote_anything_may_have_an_empty_changelog(world: World, guarantee: str) -> None:
    counted(world, guarantee, passes="nothing")
    assert world.rows(CHANGELOG) == []
    shutil.rmtree(world.folder / "state")
    world.write("in", records(5))
    world.run(counting(), once=True, processing_guarantee=guarantee)
    assert world.table("out", value=int) == {f"k{n}": 1 for n in range(5)}


@BOTH
def test_a_note_outlives_commits_that_write_no_changelog(world: World, guarantee: str) -> None:
    counted(world, guarantee)
    for _ in range(2):
        world.write("in", records(5))
        world.run(counting(passes="nothing"), once=True, processing_guarantee=guarantee)
    with world.log() as log, log.admin() as admin:
        admin.delete_topic(CHANGELOG)
    shutil.rmtree(world.folder / "state")
    refused(world, guarantee, "ends at offset 0, but was written up to")


def test_the_changelog_of_expired_windows_may_begin_later(world: World) -> None:
    def topology() -> ks.Topology:
        builder = ks.StreamsBuilder()
        windows = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0))
        windows.count(ks.Materialized("counts")).to_stream(lambda k, _: k.key, key=str).to("out", key=str, value=int)
        return builder.build()

    world.create("in")
    world.write("in", records(50))
    world.run(topology(), once=True)
    with world.log() as log, log.admin() as admin:
        admin.delete_records({TopicPartition(CHANGELOG, 0): 1})
    shutil.rmtree(world.folder / "state")
    world.run(topology(), once=True)

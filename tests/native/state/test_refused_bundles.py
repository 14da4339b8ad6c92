"""`kstreams state export|import` natively: what is refused is refused before anything changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.app import export_state
from kstreams.errors import StateError, TopologyError, UnknownTopicError
from kstreams.state.bundle import Bundle
from tests.native.bundles import application, export, exported, take
from tests.native.world import World, counted, lines, word_count


def refused(world: World, error: type[Exception], match: str, topology: ks.Topology | None = None, **how: Any) -> None:
    """An import ends with an error, and the application goes on as if nothing had been."""
    with pytest.raises(error, match=match):
        take(world, topology or word_count(), **how)
    world.write("lines", lines(30, 40))
    assert world.run(word_count(), once=True).progress().records_in == 30
    assert world.table("counts", value=int) == counted(70)


def test_a_state_is_replaced_only_on_request(world: World) -> None:
    exported(world)
    refused(world, StateError, "has state already: import with --replace", replace=False)


def test_a_run_that_could_not_start_is_refused(world: World) -> None:
    exported(world)
    refused(world, UnknownTopicError, "no topic 'letters'", errors_dead_letter_queue_topic_name="letters")


def test_state_of_another_application_is_refused(world: World) -> None:
    exported(world)
    with pytest.raises(StateError, match="of the application 'app', not of 'other'"):
        take(world, word_count(), application_id="other")


def renamed() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).group_by(lambda _, line: line, key=str)
    words.count(materialized="others").to_stream().to("counts", key=str, value=int)
    return builder.build()


def other_serde() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).group_by(lambda _, line: line, key=str)
    words.aggregate(str, lambda k, v, s: s, value=str, materialized="counts").to_stream().to("counts", value=str)
    return builder.build()


@pytest.mark.parametrize("topology", [renamed, other_serde])
def test_another_topology_is_refused(world: World, topology: Callable[[], ks.Topology]) -> None:
    exported(world)
    refused(world, TopologyError, "does not fit the state in .*bundle", topology())


def test_another_topology_exports_nothing(world: World) -> None:
    exported(world)
    with pytest.raises(TopologyError, match="does not fit the state"):
        export(world, renamed(), "other")
    assert not (world.folder / "other").exists()


@pytest.mark.parametrize("partitions", [1, 3])
def test_another_number_of_partitions_is_refused(world: World, partitions: int) -> None:
    exported(world)
    there = World(world.folder / "there")
    there.create("lines", partitions)
    there.write("lines", lines(100))
    shutil.copytree(world.folder / "bundle", there.folder / "bundle")
    with pytest.raises(TopologyError, match=f"holds 2 tasks of sub-topology 1, but there are {partitions} here"):
        take(there, word_count(), replace=False)
    assert there.topics() == ["lines"]


def test_the_state_of_another_log_is_refused(world: World) -> None:
    exported(world)
    there = World(world.folder / "there")
    there.create("lines", 2)
    there.write("lines", lines(5))
    shutil.copytree(world.folder / "bundle", there.folder / "bundle")
    with pytest.raises(StateError, match="it is the state of another log"):
        take(there, word_count(), replace=False)
    assert there.topics() == ["lines"]


def flipped(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [flipped, cut, Path.unlink])
@pytest.mark.parametrize("name", ["bundle.json", "1_1/counts.arrow"])
def test_a_damaged_bundle_is_refused(world: World, damage: Callable[[Path], None], name: str) -> None:
    exported(world)
    damage(world.folder / "bundle" / name)
    refused(world, StateError, "is damaged|cannot be read|holds no state")


def test_no_byte_of_the_description_can_be_changed(world: World) -> None:
    path = exported(world).folder / "bundle.json"
    raw = path.read_bytes()
    for place in range(len(raw)):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        with pytest.raises(StateError):
            Bundle(path.parent)


def test_a_bundle_of_another_version_is_refused(world: World) -> None:
    path = exported(world).folder / "bundle.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    refused(world, StateError, "written by another version of kstreams")


def test_a_folder_that_holds_something_is_not_written_to(world: World) -> None:
    exported(world)
    for name in ("bundle", "log"):
        with pytest.raises(StateError, match="is there already: delete it, or name another folder"):
            export(world, word_count(), name)
    with pytest.raises(StateError, match="is no folder of this machine"):
        export_state(application(world, word_count()), "s3://bucket/state")


def test_nothing_was_processed_so_there_is_nothing_to_export(world: World) -> None:
    world.create("lines", 2)
    world.write("lines", lines(5))
    with pytest.raises(StateError, match="has processed nothing"):
        export(world, word_count())
    assert world.topics() == ["lines"]
    assert not (world.folder / "bundle").exists()


def test_a_running_application_is_refused(world: World) -> None:
    exported(world)
    with world.streams(word_count()) as streams:
        streams.start()
        with pytest.raises(StateError, match="in use by process"):
            export(world, word_count(), "another")
        with pytest.raises(StateError, match="in use by process"):
            take(world, word_count())
    world.write("lines", lines(30, 40))
    world.run(word_count(), once=True)
    assert world.table("counts", value=int) == counted(70)

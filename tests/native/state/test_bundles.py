"""`kstreams state export|import` natively: what goes on is what was stopped."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.state.bundle import Bundle
from tests.native.bundles import export, exported, take, unlogged
from tests.native.world import World, counted, lines, word_count

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


@BOTH
def test_it_goes_on_where_it_was_stopped(world: World, guarantee: str) -> None:
    exported(world)
    world.write("lines", lines(30, 40))
    world.run(word_count(), once=True)  # what it does after the export is forgotten
    take(world, word_count())
    world.write("lines", lines(30, 70))
    world.run(word_count(), once=True, processing_guarantee=guarantee)
    assert world.table("counts", value=int) == counted(100)


def test_the_changelogs_of_an_import_restore_it_when_the_state_folder_is_gone(world: World) -> None:
    exported(world)
    take(world, word_count())
    world.write("lines", lines(30, 40))
    world.run(word_count(), once=True, state_dir=world.folder / "another")
    shutil.rmtree(world.folder / "another")
    world.write("lines", lines(30, 70))
    world.run(word_count(), once=True, state_dir=world.folder / "third")
    assert world.table("counts", value=int) == counted(100)


def test_what_waits_between_tasks_is_processed_before_an_export_and_nothing_else(world: World) -> None:
    bundle = exported(world)
    world.write(repartition_topic(world), [("all", "all", 7)])
    world.write("lines", lines(30, 40))
    later = export(world, word_count(), "later")
    assert later.origin.positions == bundle.origin.positions
    assert world.table("counts", value=int) == counted(40) | {"all": 41}
    take(world, word_count(), "later")
    world.run(word_count(), once=True)
    assert world.table("counts", value=int) == counted(70) | {"all": 71}


def beside() -> ks.Topology:
    """Words from a repartition topic, joined with those of another topic: their order counts."""
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).map(lambda _, line: (line, line), key=str, value=str)
    others, windows = builder.stream("others", key=str, value=str), ks.JoinWindows(before=10, after=10, grace=0)
    types = {"key": str, "value": str, "other_value": str}
    words.left_join(others, lambda a, b: f"{a}{b}", windows=windows, **types).to("out", key=str, value=str)
    return builder.build()


def test_what_waits_beside_other_input_is_left_to_a_run_which_knows_the_order(world: World) -> None:
    for topic in ("lines", "others"):
        world.create(topic)
    world.write("lines", [("a", "a", 0)])
    world.write("others", [("a", "b", 0)])
    world.run(beside(), once=True)
    world.write(repartition_topic(world), [("a", "late", 100)])
    world.write("others", [("late", "r", 100), ("a", "c", 5)])
    with pytest.raises(StateError, match=r"wait in .*-repartition-0 and in others-0, .*: run it once with --once"):
        export(world, beside())
    world.run(beside(), once=True)
    assert export(world, beside()).origin.positions == {"lines": {0: 1}, "others": {0: 3}}


def repartition_topic(world: World) -> str:
    return next(topic for topic in world.topics() if topic.endswith("-repartition"))


def through() -> ks.Topology:
    """Words that the application reads from a topic that it writes."""
    builder = ks.StreamsBuilder()
    builder.stream("lines", key=str, value=str).map(lambda _, line: (line.split()[1],) * 2, key=str, value=str).to("w")
    words = builder.stream("w", key=str, value=str).group_by_key().count(materialized="counts")
    words.to_stream().to("counts", key=str, value=int)
    return builder.build()


def test_a_topic_that_is_written_and_read_is_processed_to_its_end_before_an_export(world: World) -> None:
    for topic in ("lines", "w"):
        world.create(topic, 2)
    world.write("lines", lines(40))
    world.run(through(), once=True)
    assert world.rows("counts", value=int) == []  # what a bounded run writes there is for the next one
    export(world, through())
    expected = {f"w{n}": len(range(n, 40, 7)) for n in range(7)}
    assert world.table("counts", value=int) == expected
    take(world, through())
    world.run(through(), once=True)
    assert world.table("counts", value=int) == expected


class Windowed(ks.Processor):
    """Puts, deletes and gets the windows that the values name."""

    def init(self, context: Any) -> None:
        self.context, self.windows = context, context.get_state_store("windows")

    def process(self, record: Any) -> None:
        what, start_ms = record.value.split("@")
        if what == "get":
            self.context.forward(record.with_value(str(self.windows.get(record.key, int(start_ms)))))
        else:
            self.windows.put(record.key, None if what == "delete" else what, int(start_ms))


def windowed() -> ks.Topology:
    topology = ks.Topology().add_source("in", "in", key=str, value=str).add_processor("windowed", Windowed, "in")
    windows = ks.Stores.window("windows", retention=100, size=10, key=str, value=str)
    return topology.add_state_store(windows, "windowed").add_sink("out", "out", "windowed", key=str, value=str)


@pytest.mark.parametrize("moved", [False, True], ids=["state folder kept", "state folder gone"])
def test_a_store_knows_the_latest_time_whose_row_is_gone_again(world: World, moved: bool) -> None:
    world.create("in")
    world.write("in", [("k", "put@1000", 0), ("k", "delete@1000", 1)])
    world.run(windowed(), once=True)
    export(world, windowed())
    take(world, windowed())
    world.write("in", [("k", "get@0", 2)])
    world.run(windowed(), once=True)
    world.write("in", [("k", "put@500", 3), ("k", "get@500", 4), ("k", "put@950", 5), ("k", "get@950", 6)])
    world.run(windowed(), once=True, **({"state_dir": world.folder / "another"} if moved else {}))
    assert [row.value for row in world.rows("out")] == ["None", "None", "put"]


def test_a_store_without_a_changelog_is_taken_along_on_the_disk(world: World) -> None:
    world.create("in")
    world.write("in", [("k", "a", 0)])
    world.run(unlogged(), once=True)
    export(world, unlogged())
    shutil.rmtree(world.folder / "state")
    take(world, unlogged())
    world.write("in", [("k", "b", 1)])
    world.run(unlogged(), once=True)
    assert [row.value for row in world.rows("out")] == ["None", "a"]


def test_the_end_of_input_that_was_processed_stays_processed(world: World) -> None:
    builder = ks.StreamsBuilder()
    windows = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=100, grace=0))
    closed = windows.count().suppress(ks.Suppressed.until_window_closes())
    closed.to_stream().map(lambda k, n: (k.key, n), key=str, value=int).to("out")
    topology = builder.build()
    world.create("in")
    world.write("in", [("k", "a", 5)])
    world.run(topology)
    assert export(world, topology).origin.ended
    take(world, topology)
    world.run(topology)
    assert [row.value for row in world.rows("out", value=int)] == [1]


def test_damaged_stores_are_restored_by_a_run_before_they_are_exported(world: World) -> None:
    exported(world)
    for path in world.folder.glob("state/app/1_*/rocksdb/CURRENT"):
        path.unlink()
    with pytest.raises(StateError, match=r"are damaged: .*: run it once with --once, which restores them, then export"):
        export(world, word_count(), "later")
    assert not (world.folder / "later").exists()
    world.run(word_count(), once=True)
    assert export(world, word_count(), "later").origin == Bundle(world.folder / "bundle").origin

"""`kstreams state export|import` natively: what goes on is what was stopped, and nothing else is taken for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.app import App, export_state, import_state
from kstreams.config import Config
from kstreams.errors import StateError, TopologyError, UnknownTopicError
from kstreams.state.bundle import Bundle
from tests.native.world import World, counted, lines, word_count

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


def application(world: World, topology: ks.Topology, **settings: Any) -> App:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return App(topology, Config.of({**world.settings, **given}), world.folder / "app.py")


def export(world: World, topology: ks.Topology, name: str = "bundle", **settings: Any) -> Bundle:
    return export_state(application(world, topology, **settings), world.folder / name)


def take(world: World, topology: ks.Topology, name: str = "bundle", replace: bool = True, **settings: Any) -> None:
    import_state(application(world, topology, **settings), world.folder / name, replace=replace)


def exported(world: World, rows: int = 40) -> Bundle:
    """The state of a word count over two partitions that has run."""
    world.create("lines", 2)
    world.write("lines", lines(rows))
    world.run(word_count(), once=True)
    return export(world, word_count())


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


def unlogged() -> ks.Topology:
    topology = ks.Topology().add_source("in", "in", key=str, value=str).add_processor("keep", Keep, "in")
    kept = ks.Stores.key_value("kept", key=str, value=str, logging=False)
    return topology.add_state_store(kept, "keep").add_sink("out", "out", "keep", key=str, value=str)


class Keep(ks.Processor):
    """Forwards what it was given for the key before."""

    def init(self, context: Any) -> None:
        self.context, self.kept = context, context.get_state_store("kept")

    def process(self, record: Any) -> None:
        self.context.forward(record.with_value(str(self.kept.get(record.key))))
        self.kept.put(record.key, record.value)


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


# what is refused: before anything changes


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
    refused(world, UnknownTopicError, "no topic 'letters'", errors_deadletterqueue_topic_name="letters")


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


KILLED = """
import os, sys
from kstreams.log.embedded.producer import EmbeddedProducer
from kstreams.runtime.native.state.topology_file import TopologyFile
from tests.native import test_bundles
from tests.native.world import World, word_count
from pathlib import Path

_, folder, topology, owner, function, calls = sys.argv
calls = [None] * int(calls)
works = getattr(eval(owner), function)

def dies(*arguments):
    calls.pop()
    return works(*arguments) if calls else os._exit(9)

setattr(eval(owner), function, dies)
test_bundles.take(World(Path(folder)), getattr(test_bundles, topology)())
"""


def kill(world: World, topology: str, owner: str, function: str, calls: int = 1) -> None:
    """Import in another process, which dies when it calls a function, the first time or later."""
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", KILLED, str(world.folder), topology, owner, function, str(calls)]
    assert subprocess.run(command, env=where, check=False).returncode == 9


@pytest.mark.slow
@pytest.mark.parametrize("owner", ["EmbeddedProducer", "TopologyFile"], ids=["before it counts", "after"])
def test_a_store_without_a_changelog_counts_when_the_import_does(world: World, owner: str) -> None:
    world.create("in")
    world.write("in", [("k", "a", 0)])
    world.run(unlogged(), once=True)
    export(world, unlogged())
    kill(world, "unlogged", owner, {"EmbeddedProducer": "commit_transaction", "TopologyFile": "accept"}[owner])
    world.write("in", [("k", "b", 1)])
    world.run(unlogged(), once=True)
    from_the_beginning, going_on = ["None", "None", "a"], ["None", "a"]
    assert [row.value for row in world.rows("out")] == (going_on if owner == "TopologyFile" else from_the_beginning)


def test_of_an_interrupted_import_nothing_counts(world: World) -> None:
    exported(world)
    kill(world, "word_count", "test_bundles.Bundle", "rows", 4)
    copied = World(world.folder / "copy")
    shutil.copytree(world.folder, copied.folder, ignore=shutil.ignore_patterns("copy"))
    with pytest.raises(StateError, match="has state already: import with --replace"):
        take(world, word_count(), replace=False)
    take(world, word_count())
    world.write("lines", lines(30, 40))
    world.run(word_count(), once=True)
    assert world.table("counts", value=int) == counted(70)
    copied.run(word_count(), once=True, processing_guarantee="exactly_once_v2")  # without it: from the beginning
    assert [row.value for row in copied.rows("counts", value=int) if row.key == "all"][-1] == 40

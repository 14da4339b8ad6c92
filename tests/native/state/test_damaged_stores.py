"""Damaged files of stores: noticed, said, counted, and rebuilt from changelogs, so that no result is another one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.state import Stores
from tests.native.world import World
from tests.support.examples import few_of

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


def tables(world: World, pattern: str = "*") -> list[Path]:
    found = sorted((world.folder / "state" / "app").glob(f"{pattern}/rocksdb/*.sst"))
    assert found
    return found


def flip_every_block(world: World) -> None:
    """A bit in every 64 bytes of every table, its index and footer left whole: no look at the file alone shows it."""
    for table in tables(world):
        data = bytearray(table.read_bytes())
        for place in range(10, len(data) // 2, 64):
            data[place] ^= 1
        table.write_bytes(bytes(data))


def flip_footers(world: World) -> None:
    for table in tables(world):
        data = bytearray(table.read_bytes())
        data[-1] ^= 1
        table.write_bytes(bytes(data))


def lose_tables(world: World) -> None:
    for table in tables(world):
        table.unlink()


def damage(file: str) -> Callable[[World], None]:
    def flip(world: World) -> None:
        for table in tables(world):
            for path in table.parent.glob(file):
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(bytes(data))

    return flip


def lose_current(world: World) -> None:
    for table in tables(world):
        (table.parent / "CURRENT").unlink()


EVERY_DAMAGE = pytest.mark.parametrize(
    "break_it",
    [flip_every_block, flip_footers, lose_tables, damage("MANIFEST-*"), damage("CURRENT"), lose_current],
    ids=["blocks", "footers", "missing tables", "MANIFEST", "CURRENT", "no CURRENT"],
)


def records(count: int, start: int = 0) -> list[tuple[str, str, int]]:
    return [(f"k{n % 211}", f"v{n}", n * 10) for n in range(start, start + count)]


def counts(builder: ks.StreamsBuilder, **store: Any) -> None:
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.count(materialized=ks.Materialized("s", **store)).to_stream().to("out", key=str, value=int)


def window_counts(builder: ks.StreamsBuilder) -> None:
    windowed = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=5_000, grace=0))
    counted = windowed.count(materialized="s").to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str)
    counted.to("out", key=str, value=int)


def session_counts(builder: ks.StreamsBuilder) -> None:
    windowed = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.SessionWindows(gap=3_000))
    counted = windowed.count(materialized="s").to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str)
    counted.to("out", key=str, value=int)


class Latest(ks.Processor[str, str, str, str]):
    """Says which version came before each."""

    def init(self, context: Any) -> None:
        self._context, self._store = context, context.get_state_store("s")

    def process(self, record: Any) -> None:
        before = self._store.get(record.key)
        self._store.put(record.key, record.value, record.timestamp)
        told = f"{before.value if before else None} {record.value}"
        self._context.forward(ks.Record(key=record.key, value=told, timestamp=record.timestamp))


def versions(builder: ks.StreamsBuilder) -> None:
    builder.add_state_store(Stores.versioned("s", key=str, value=str, history_retention=10**9))
    processed = builder.stream("in", key=str, value=str).process(Latest, stores=["s"], key=str, value=str)
    processed.to("out", key=str, value=str)


def suppressed(builder: ks.StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    counted = grouped.count(materialized="s").suppress(ks.Suppressed.until_time_limit(1_000))
    counted.to_stream().to("out", key=str, value=int)


def source_table(builder: ks.StreamsBuilder) -> None:
    table = builder.table("in", key=str, value=str, materialized="s")
    builder.stream("asked", key=str, value=str).join(table, lambda asked, value: asked + value).to(
        "out", key=str, value=str
    )


EVERY_KIND = pytest.mark.parametrize(
    "declare", few_of([counts, window_counts, session_counts, versions, suppressed, source_table], 3)
)


def topology(declare: Callable[[ks.StreamsBuilder], None]) -> ks.Topology:
    builder = ks.StreamsBuilder()
    declare(builder)
    return builder.build()


def results(world: World, declare: Callable[[ks.StreamsBuilder], None], guarantee: str, in_between: Any) -> Any:
    """What comes out of two runs over the same input, with something done in between."""
    world.create("in", 2)
    world.create("asked", 2)
    world.write("in", records(2_000))
    world.write("asked", records(500))
    settings = {"processing_guarantee": guarantee, "commit_interval_ms": 60_000}  # caches let go at the end alone
    world.run(topology(declare), once=True, **settings)
    in_between(world)
    world.write("in", records(1_000, 2_000))
    world.write("asked", records(500, 2_500))
    progress = world.run(topology(declare), once=True, **settings).progress()
    return world.table("out", value=bytes), progress


@BOTH
@EVERY_KIND
def test_flipped_bits_in_every_table_change_no_result(
    tmp_path: Path, declare: Any, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected, _ = results(World(tmp_path / "whole"), declare, guarantee, lambda _: None)
    with caplog.at_level(logging.WARNING, "kstreams"):
        found, progress = results(World(tmp_path / "broken"), declare, guarantee, flip_every_block)
    assert found == expected
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert progress.rebuilt == len(said) == 2  # one line for each task
    assert all("rocksdb are damaged: Corruption" in line and "rebuilt from their" in line for line in said)


@EVERY_DAMAGE
def test_every_kind_of_damage_is_noticed_and_mended(
    tmp_path: Path, break_it: Any, caplog: pytest.LogCaptureFixture
) -> None:
    expected, _ = results(World(tmp_path / "whole"), counts, "exactly_once_v2", lambda _: None)
    found, progress = results(World(tmp_path / "broken"), counts, "exactly_once_v2", break_it)
    assert found == expected
    assert progress.rebuilt == 2


def test_a_damaged_store_without_changelog_is_not_begun_anew_in_silence(world: World) -> None:
    def unlogged(builder: ks.StreamsBuilder) -> None:
        counts(builder, logging=False)

    world.create("in")
    world.write("in", records(2_000))
    world.run(topology(unlogged), once=True)
    flip_every_block(world)
    world.write("in", records(10))
    with pytest.raises(
        StateError, match=r"stores s have no changelog, so what they held is lost: delete .*0_0 .*--reset"
    ):
        world.run(topology(unlogged), once=True)
    assert tables(world)


class KeepsBreaking(ks.Processor[str, str, str, str]):
    """Damages the store's files beneath itself, every time it is made."""

    folder: Path

    def init(self, context: Any) -> None:
        self._store = context.get_state_store("s")

    def process(self, record: Any) -> None:
        self._store.family.estimated_rows()  # what was restored is written now
        self._store.family._rows.flush()
        for table in self.folder.glob("state/app/*/rocksdb/*.sst"):
            table.write_bytes(bytes(b ^ 1 for b in table.read_bytes()))
        self._store.get("k5")


def test_damage_that_comes_again_at_once_is_an_error(world: World) -> None:
    def breaking(builder: ks.StreamsBuilder) -> None:
        builder.add_state_store(Stores.key_value("s", key=str, value=str))
        KeepsBreaking.folder = world.folder
        builder.stream("in", key=str, value=str).process(KeepsBreaking, stores=["s"])

    def filling(builder: ks.StreamsBuilder) -> None:
        builder.add_state_store(Stores.key_value("s", key=str, value=str))
        builder.stream("in", key=str, value=str).process(Fills, stores=["s"])

    world.create("in")
    world.write("in", records(2_000))
    world.run(topology(filling), once=True)
    world.write("in", records(10))
    streams = world.streams(topology(breaking))
    streams.start(once=True)
    with pytest.raises(StateError, match="rebuilt just before: have disk and memory"):
        streams.wait(60)
    assert streams.progress().rebuilt == 1


class Fills(ks.Processor[str, str, str, str]):
    """Puts every record into the store."""

    def init(self, context: Any) -> None:
        self._store = context.get_state_store("s")

    def process(self, record: Any) -> None:
        self._store.put(record.key, record.value * 100)  # so that the table has many blocks


class BreaksGlobals(ks.Processor[str, str, str, str]):
    """Damages the files of the global table, once, then looks into it."""

    folder: Path
    is_broken = False

    def init(self, context: Any) -> None:
        self._context, self._names = context, context.get_state_store("names")

    def process(self, record: Any) -> None:
        if not BreaksGlobals.is_broken:
            BreaksGlobals.is_broken = True
            self._names.family._rows.flush()
            for table in self.folder.glob("state/app/global/*/rocksdb/*.sst"):
                table.write_bytes(bytes(b ^ 1 for b in table.read_bytes()))
            self._names._entries.forget()
        found = self._names.get(record.key)
        self._context.forward(ks.Record(key=record.key, value=str(found and found.value), timestamp=0))


@BOTH
def test_a_global_table_that_is_damaged_while_tasks_run_is_loaded_anew(world: World, guarantee: str) -> None:
    world.create("names", 2)
    world.create("in", 2)
    world.write("names", [(f"k{n}", f"n{n}", 0) for n in range(50)])
    world.write("in", [(f"k{n}", "v", n) for n in range(50)])
    BreaksGlobals.folder, BreaksGlobals.is_broken = world.folder, False
    builder = ks.StreamsBuilder()
    builder.global_table("names", key=str, value=str, materialized="names")
    builder.stream("in", key=str, value=str).process(BreaksGlobals, key=str, value=str).to("out", key=str, value=str)
    streams = world.run(builder.build(), once=True, num_stream_threads=2, processing_guarantee=guarantee)
    assert world.table("out") == {f"k{n}": f"n{n}" for n in range(50)}
    assert streams.progress().rebuilt == 1

"""Stores outlive a run, come back from their changelogs when they are lost or stale, and can be asked questions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.state.restore import RestoreProgress
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import WAIT_S, World, counted, lines, word_count

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


def settings_of(world: World, **more: object) -> dict[str, object]:
    return {**world.settings, **more}


def run_watched(world: World, **more: object) -> list[RestoreProgress]:
    """Run word count to the end; what was said about restores."""
    told: list[RestoreProgress] = []
    streams = KafkaStreams(word_count(), settings_of(world, **more), on_restore=told.append)
    streams.start(until_end=True)
    assert streams.wait(WAIT_S)
    return told


@BOTH
def test_state_that_was_deleted_comes_back_from_its_changelog(world: World, guarantee: str) -> None:
    more = {"processing.guarantee": guarantee}
    world.create("lines", 2)
    world.write("lines", lines(200))
    assert run_watched(world, **more) == []
    shutil.rmtree(world.folder / "state")
    world.write("lines", lines(100, 200))
    told = run_watched(world, **more)
    assert world.table("counts", value=int) == counted(300)
    ends = {(p.task, p.store): p for p in told}
    assert {store for _, store in ends} == {"counts"}
    assert all(p.restored == p.total > 0 for p in ends.values())


@BOTH
def test_a_stale_store_reads_only_what_it_lacks(world: World, guarantee: str, tmp_path: Path) -> None:
    more = {"processing.guarantee": guarantee}
    world.create("lines", 1)
    world.write("lines", lines(200))
    run_watched(world, **more)
    shutil.copytree(tmp_path / "state", tmp_path / "kept")
    world.write("lines", [("k", "all", 500)])
    run_watched(world, **more)
    shutil.rmtree(tmp_path / "state")
    shutil.copytree(tmp_path / "kept", tmp_path / "state")
    world.write("lines", [("k", "all", 501)])
    told = run_watched(world, **more)
    assert {p.total for p in told} == {1}
    assert world.table("counts", value=int)["all"] == 202


@BOTH
def test_the_changelog_holds_what_the_store_holds(world: World, guarantee: str) -> None:
    world.create("lines", 2)
    world.write("lines", lines(300))
    world.run(word_count(), processing_guarantee=guarantee)
    assert world.table("app-counts-changelog", value=int) == counted(300)


def test_a_store_of_another_log_is_refused(world: World, tmp_path: Path) -> None:
    world.create("lines")
    world.write("lines", lines(50))
    world.run(word_count())
    shutil.rmtree(tmp_path / "log")
    world.create("lines")
    with pytest.raises(StateError, match="ends at offset 0, but was written up to"):
        world.run(word_count())


def test_unlogged_stores_have_no_changelog(world: World) -> None:
    world.create("in")
    world.write("in", [("a", "x", 1)])
    builder = ks.StreamsBuilder()
    counted = builder.stream("in", key=str, value=str).group_by_key().count(ks.Materialized("c", logging=False))
    counted.to_stream().to("out", key=str, value=int)
    world.run(builder.build())
    assert world.topics() == ["in", "out"]
    assert world.table("out", value=int) == {"a": 1}


def test_changelogs_of_windows_are_kept_for_their_retention_in_event_time(world: World) -> None:
    world.create("in")
    builder = ks.StreamsBuilder()
    windows = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0))
    windows.count(ks.Materialized("w", retention=1000)).to_stream(lambda k, _: k.key, key=str).to("out", value=int)
    world.run(builder.build())
    with world.log() as log, log.admin() as admin:
        config = admin.describe_topic("app-w-changelog").config
    assert set(config["cleanup.policy"].split(",")) == {"compact", "delete"}
    assert config["retention.ms"] == str(1000 + 86_400_000)
    assert config["retention.clock"] == "record"


def test_changelogs_of_windows_without_an_end_are_kept_for_as_long_as_a_topic_can_say(world: World) -> None:
    world.create("in")
    world.write("in", [("a", "x", 1), ("a", "y", 10**12)])
    builder = ks.StreamsBuilder()
    windows = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.UnlimitedWindows())
    windows.count("w").to_stream(lambda k, _: k.key, key=str).to("out", value=int)
    world.run(builder.build())
    assert world.table("out", value=int) == {"a": 2}
    with world.log() as log, log.admin() as admin:
        assert admin.describe_topic("app-w-changelog").config["retention.ms"] == str(2**63 - 1)


def test_stores_answer_questions_while_the_application_runs(world: World) -> None:
    world.create("lines", 3)
    world.write("lines", lines(100))
    streams = world.streams(word_count(), num_stream_threads=2, poll_ms=5)
    with pytest.raises(StateError, match="RUNNING"):
        streams.store("counts")
    started = []
    streams.set_state_listener(lambda new, old: started.append((old, new)))
    streams.start()
    for _ in range(3000):
        streams.wait(0.01)
        if streams.state is State.RUNNING:
            store = streams.store("counts")
            if {key: pair.value for key, pair in store.all()} == counted(100):
                break
    assert store.approximate_num_entries() == len(counted(100))
    assert store.get("nobody") is None
    assert store.get("all").value == 100
    with pytest.raises(AttributeError, match="read-only"):
        store.put("a", 1)
    with pytest.raises(StateError, match="the topology has: counts"):
        streams.store("count")
    names = [task.task_id for thread in streams.metadata_for_local_threads() for task in thread.tasks]
    assert sorted(names) == ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]
    assert streams.close(WAIT_S)
    assert started == [
        (State.CREATED, State.REBALANCING),
        (State.REBALANCING, State.RUNNING),
        (State.RUNNING, State.PENDING_SHUTDOWN),
        (State.PENDING_SHUTDOWN, State.NOT_RUNNING),
    ]
    with pytest.raises(StateError):
        store.get("all")


def test_a_global_table_is_loaded_before_the_first_record(world: World) -> None:
    world.create("names", 2)
    world.create("in", 2)
    world.write("names", [(f"k{i}", f"n{i}", 0) for i in range(50)])
    world.write("in", [(f"k{i}", "v", i) for i in range(50)])
    builder = ks.StreamsBuilder()
    names = builder.global_table("names", key=str, value=str)
    joined = builder.stream("in", key=str, value=str).join(names, lambda v, n: f"{v}{n}", key_selector=lambda k, _: k)
    joined.to("out", key=str, value=str)
    for _ in range(2):
        world.run(builder.build(), num_stream_threads=2)
    assert world.table("out") == {f"k{i}": f"vn{i}" for i in range(50)}


def test_repartition_topics_are_purged_of_what_was_committed(world: World) -> None:
    world.create("lines")
    world.write("lines", lines(100))
    world.run(word_count(), repartition_purge_interval_ms=0)
    assert world.rows("app-counts-repartition") == []
    world.write("lines", lines(100, 100))
    world.run(word_count())
    assert world.table("counts", value=int) == counted(200)


def test_questions_see_what_an_aggregation_in_columns_has_not_put_into_its_store_yet(world: World) -> None:
    world.create("in")
    world.write("in", [(f"k{i % 3}", "x", i) for i in range(300)])
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count(materialized="counts")
    never = 10**9
    with world.streams(builder.build(), columns_min_rows=1, commit_interval_ms=never, poll_ms=5) as streams:
        streams.start()
        for _ in range(3000):
            streams.wait(0.01)
            if streams.state is State.RUNNING and streams.progress().records_in == 300:
                break
        store = streams.store("counts")
        assert {key: pair.value for key, pair in store.all()} == {"k0": 100, "k1": 100, "k2": 100}

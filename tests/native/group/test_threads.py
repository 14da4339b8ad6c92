"""Threads come and go while an application runs, and it can be paused."""

from __future__ import annotations

from time import sleep

import pytest

from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import World, counted, lines, until, word_count


@pytest.fixture
def filled(world: World) -> World:
    world.create("lines", 4)
    world.create("counts")
    world.write("lines", lines(40))
    return world


def shares(streams: KafkaStreams) -> list[int]:
    """How many tasks each thread has."""
    return [len(thread.tasks) for thread in streams.metadata_for_local_threads()]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_thread_that_is_added_gets_tasks_and_one_that_is_removed_gives_them_back(
    filled: World, guarantee: str
) -> None:
    settings = {"processing_guarantee": guarantee, "commit_interval_ms": 20, "statestore_cache_max_bytes": 0}
    with filled.streams(word_count(), **settings) as streams:
        streams.start()
        until(lambda: shares(streams) == [8])
        assert streams.add_stream_thread() == "app-StreamThread-2"
        until(lambda: shares(streams) == [4, 4])
        filled.write("lines", lines(40, 40))
        until(lambda: filled.table("counts", value=int) == counted(80))
        assert streams.remove_stream_thread() == "app-StreamThread-2"
        until(lambda: shares(streams) == [8])
        filled.write("lines", lines(40, 80))
        until(lambda: filled.table("counts", value=int) == counted(120))
        until(lambda: streams.state is State.RUNNING)
        assert streams.progress().records_in == 120
        assert streams.remove_stream_thread() is None
    rows = [(row.key, row.value) for row in filled.rows("counts", value=int)]
    assert len(rows) == len(set(rows))


def test_a_paused_application_processes_nothing_until_it_goes_on(filled: World) -> None:
    with filled.streams(word_count(), commit_interval_ms=20) as streams:
        streams.start()
        until(lambda: filled.table("counts", value=int) == counted(40))
        streams.pause()
        assert streams.is_paused
        sleep(0.3)  # what was begun is ended
        filled.write("lines", lines(40, 40))
        sleep(0.3)
        assert filled.table("counts", value=int) == counted(40)
        assert streams.store("counts").get("all").value == 40
        streams.resume()
        until(lambda: filled.table("counts", value=int) == counted(80))


def test_threads_of_a_bounded_run_stay(filled: World) -> None:
    streams = filled.run(word_count())
    assert streams.add_stream_thread() is None
    assert streams.remove_stream_thread() is None

"""Queries of what a task sees now: the thread that owns a store answers, at once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import StateError, StoreNotAvailableError
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.state.read_only_store import ReadOnlyBuffer
from tests.native.world import WAIT_S, World, until, word_count

RESTS_FOR_A_DAY = 86_400_000
"""In milliseconds: a thread without records that nobody wakes is not heard of again in a test."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.create("lines", 2)
    world.write("lines", [(str(i), f"all w{i % 5}", i) for i in range(20)])
    return world


def running(streams: KafkaStreams) -> None:
    streams.start()
    until(lambda: streams.state is State.RUNNING)


def words(streams: KafkaStreams) -> int:
    """How many words are counted."""
    return sum(row.value for _, row in streams.store("counts").all())


def test_a_thread_that_waits_for_records_answers_at_once(world: World) -> None:
    with world.streams(word_count(), poll_ms=RESTS_FOR_A_DAY) as streams:
        running(streams)
        until(lambda: words(streams) == 40)
        assert streams.store("counts").get("all").value == 20


def test_a_thread_that_waits_for_records_stops_at_once(world: World) -> None:
    streams = world.streams(word_count(), poll_ms=RESTS_FOR_A_DAY)
    running(streams)
    assert streams.close(timeout=20)


def test_a_paused_thread_answers_at_once(world: World) -> None:
    with world.streams(word_count(), poll_ms=RESTS_FOR_A_DAY) as streams:
        running(streams)
        until(lambda: words(streams) == 40)
        streams.pause()
        assert words(streams) == words(streams) == 40
        streams.resume()


def test_several_threads_of_the_user_ask_at_the_same_time(world: World) -> None:
    with world.streams(word_count(), num_stream_threads=2) as streams:
        running(streams)
        until(lambda: words(streams) == 40)
        counts, found = streams.store("counts"), list[int]()
        askers = [
            threading.Thread(target=lambda: found.extend(counts.get("all").value for _ in range(50))) for _ in range(4)
        ]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        assert found == [20] * 200


def test_a_query_waits_for_no_more_than_a_run_of_a_busy_task(tmp_path: Path) -> None:
    world, answered, is_asking = World(tmp_path), threading.Event(), threading.Event()
    world.create("in")
    world.write("in", [(str(i), str(i), i) for i in range(5_000)])
    in_time: list[bool] = []

    def ask() -> None:
        last = streams.store("last")
        is_asking.set()
        last.get("0")
        answered.set()

    def note(key: str, value: str) -> str:
        if key == "0":
            threading.Thread(target=ask).start()
            is_asking.wait(WAIT_S)
        elif key == "4999":  # the run of the first one is over for long
            in_time.append(answered.wait(20))
        return value

    builder = ks.StreamsBuilder()
    noted = builder.stream("in", key=str, value=str).map_values(note, with_key=True, value=str)
    noted.to_table(materialized="last")
    with world.streams(builder.build()) as streams:
        running(streams)
        until(lambda: bool(in_time))
    assert in_time == [True]


def test_a_task_that_hangs_says_to_ask_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kstreams.runtime.native.local_stores._TIMEOUT_S", 0.1)
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(line: str) -> str:
        if line == "hang":
            hangs.set()
            goes_on.wait(WAIT_S)
        return line

    builder = ks.StreamsBuilder()
    builder.stream("lines", key=str, value=str).map_values(hang, value=str).to_table(materialized="last")
    with world.streams(builder.build()) as streams:
        running(streams)
        world.write("lines", [("1", "hang", 100)])
        assert hangs.wait(WAIT_S)
        with pytest.raises(StoreNotAvailableError, match="has not answered"):
            streams.store("last").get("1")
        failures = {each.failure for each in streams.query("last", ks.KeyQuery("1")).partitions.values()}
        assert failures == {ks.FailureReason.NOT_PRESENT}
        goes_on.set()
        until(lambda: found_in(streams, "1") == "hang")


def found_in(streams: KafkaStreams, key: str) -> str | None:
    try:
        return streams.query("last", ks.KeyQuery(key)).only_value
    except StateError:
        return None


class Words:
    """A store of the user's own making."""

    def __init__(self, log: Any) -> None:
        self.log, self.seen = log, set[str]()

    def add(self, word: str) -> None:
        self.seen.add(word)
        self.log(word.encode(), b"")

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        self.seen.add(key.decode())


class Collect(ks.FixedKeyProcessor[str, str, str]):
    @classmethod
    def stores(cls) -> list[Any]:
        return [ks.Stores.custom("words", Words)]

    def init(self, context: ks.FixedKeyProcessorContext[str, str]) -> None:
        self.words: Words = context.get_state_store("words")

    def process(self, record: ks.FixedKeyRecord[str, str]) -> None:
        for word in record.value.split():
            self.words.add(word)


class LongWords:
    """A query of the user's own making."""

    kinds = ("custom",)

    def read(self, store: Words) -> list[str]:
        return sorted(word for word in store.seen if len(word) > 2)


def test_a_store_of_ones_own_making_answers_a_query_of_ones_own_making(world: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("lines", key=str, value=str).process_values(Collect, value=str)
    with world.streams(builder.build()) as streams:
        running(streams)
        until(lambda: [each.value for each in streams.query("words", LongWords()).partitions.values()] == [["all"]] * 2)


def test_what_waits_for_a_partner_in_a_join_has_no_methods_that_fail(world: World) -> None:
    builder = ks.StreamsBuilder()
    lines, others = builder.stream("lines", key=str, value=str), builder.stream("others", key=str, value=str)
    world.create("others", 2)
    windows = ks.JoinWindows(before=1_000, after=1_000)
    lines.left_join(others, lambda line, other: line, windows=windows, value=str).to("joined")
    topology = builder.build()
    (name,) = (name for name, store in topology.stores.items() if store.kind.name == "outer-join")
    with world.streams(topology) as streams:
        running(streams)
        with pytest.raises(StateError, match="ask for it as ReadOnlyStore"):
            streams.store(name, ReadOnlyBuffer)
        with pytest.raises(AttributeError, match="has no method 'num_records' here"):
            _ = streams.store(name).num_records  # type: ignore[attr-defined]

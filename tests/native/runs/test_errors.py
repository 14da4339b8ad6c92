"""Bad input: a clear error of the right kind, the client in state ERROR, threads stopped, nothing lost."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import (
    ConfigError,
    KStreamsError,
    LogError,
    LogFormatError,
    ProcessingError,
    SerdeError,
    StateError,
    TopologyError,
    UnknownTopicError,
)
from kstreams.log import open_log
from kstreams.log.embedded.disk import Disk
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import WAIT_S, World, counted, lines, word_count


def copy(function: object = lambda v: v, value: type = str) -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=value).map_values(function, value=value).to("out", key=str, value=value)
    return builder.build()


def failure(world: World, topology: ks.Topology, **settings: object) -> BaseException:
    """What ends a run that must not end well."""
    streams = world.streams(topology, **settings)
    with pytest.raises(KStreamsError) as caught:
        to_the_end(streams)
    assert streams.state is State.ERROR
    assert streams.error is caught.value
    return caught.value


def to_the_end(streams: KafkaStreams) -> None:
    streams.start(until_end=True)
    streams.wait(WAIT_S)


def test_an_unknown_setting(world: World) -> None:
    with pytest.raises(ConfigError, match=r"the nearest is num\.stream\.threads"):
        world.streams(copy(), num_stream_thread=2)


def test_no_application_id() -> None:
    with pytest.raises(ConfigError, match=r"application\.id is not set"):
        KafkaStreams(copy(), {})


def test_a_missing_topic_is_named_with_the_operator_that_reads_it(world: World) -> None:
    world.create("inn")
    error = failure(world, copy())
    assert isinstance(error, UnknownTopicError)
    assert "(KSTREAM-SOURCE-0000000000)" in str(error)
    assert "'inn'" in str(error)


def test_topics_of_a_join_that_differ_in_width(world: World) -> None:
    world.create("left", 2)
    world.create("right", 3)
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    sides = {"key": str, "value": str, "other_value": str}
    left.join(right, lambda a, b: a + b, windows=ks.JoinWindows(before=5, after=5, grace=0), **sides).to(
        "out", value=str
    )
    error = failure(world, builder.build())
    assert isinstance(error, TopologyError)
    assert "Topics not co-partitioned: [{left=2, right=3}]" in str(error)


def test_a_value_that_does_not_decode_is_placed(world: World) -> None:
    world.create("in")
    world.write("in", [("a", 1, 1), ("b", "not eight bytes", 2)])
    error = failure(world, copy(value=int))
    assert isinstance(error, SerdeError)
    assert "in-0@1" in str(error)
    assert "KSTREAM-SOURCE-0000000000" in str(error)


def test_a_function_that_raises_is_named_with_its_record_and_nothing_is_lost(world: World) -> None:
    world.create("in")
    world.write("in", [("a", "1", 1), ("b", "x", 2), ("c", "3", 3)])
    error = failure(world, copy(lambda value: str(int(value))))
    assert isinstance(error, ProcessingError)
    assert error.operator == "KSTREAM-MAPVALUES-0000000001"
    assert "test_errors.py" in str(error.declared_at)
    assert error.record == "in-0@1"
    assert isinstance(error.cause, ValueError)
    world.run(copy())  # repaired, the application goes on without a gap
    assert [row.value for row in world.rows("out")][-3:] == ["1", "x", "3"]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_what_a_failed_run_left_uncommitted_is_done_again(world: World, guarantee: str) -> None:
    world.create("lines", 2)
    world.write("lines", [(str(i), "a b", i) for i in range(100)])
    world.run(word_count(), once=True, processing_guarantee=guarantee)
    world.write("lines", [("x", "a", 200)] * 50, 0)
    calls = []

    def fragile(line: str) -> list[str]:
        calls.append(line)
        if len(calls) > 20:
            raise OSError("the disk of the user is full")
        return line.split()

    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).flat_map_values(fragile, value=str)
    counts = words.group_by(lambda _, word: word, key=str).count(materialized="counts")
    counts.to_stream().to("counts", key=str, value=int)
    assert isinstance(failure(world, builder.build(), processing_guarantee=guarantee), ProcessingError)
    world.run(word_count(), processing_guarantee=guarantee)
    assert world.table("counts", value=int) == {"a": 150, "b": 100}


def test_the_other_threads_stop_when_one_dies(world: World) -> None:
    world.create("in", 4)
    world.write("in", [("k", "fine", 1)] * 10)
    world.write("in", [("k", "bad", 1)], 3)

    def picky(value: str) -> str:
        if value == "bad":
            raise ValueError(value)
        return value

    told: list[BaseException] = []

    def answer(error: BaseException) -> ks.StreamThreadExceptionResponse:
        told.append(error)
        return ks.StreamThreadExceptionResponse.SHUTDOWN_CLIENT

    streams = world.streams(copy(picky), num_stream_threads=4)
    streams.set_uncaught_exception_handler(answer)
    streams.start()
    with pytest.raises(ProcessingError):
        streams.wait(WAIT_S)
    assert streams.state is State.ERROR
    assert told == [streams.error]


def test_a_log_of_a_newer_format(world: World, tmp_path: Path) -> None:
    world.create("in")
    import sqlite3

    with sqlite3.connect(tmp_path / "log" / "catalogue.sqlite") as catalogue:
        catalogue.execute("PRAGMA user_version = 99")
    catalogue.close()
    assert isinstance(failure(world, copy()), LogFormatError)


def test_offsets_of_a_newer_version(world: World) -> None:
    from kstreams.kernel.batch import TopicPartition
    from kstreams.log import OffsetAndMetadata

    world.create("in")
    with world.log() as log, log.admin() as admin:
        newer = json.dumps({"v": 99, "memo": {}}, separators=(",", ":"))
        admin.commit("app", {TopicPartition("in", 0): OffsetAndMetadata(0, newer)})
    assert isinstance(failure(world, copy()), LogFormatError)


def test_a_topic_that_was_deleted_and_created_anew(world: World) -> None:
    world.create("in")
    world.write("in", [("a", "1", 1)] * 5)
    world.run(copy())
    with world.log() as log, log.admin() as admin:
        # An admin forgets the offsets with the topic; another tool may not.
        from kstreams.kernel.batch import TopicPartition
        from kstreams.log import OffsetAndMetadata

        admin.commit("app", {TopicPartition("in", 0): OffsetAndMetadata(50)})
    assert "created anew" in str(failure(world, copy()))


def test_a_run_that_ends_with_its_input_is_alone(world: World) -> None:
    world.create("in")
    first = world.streams(copy())
    first.start()
    for once in (True, False):
        with pytest.raises(StateError, match=r"The application 'app' of the log .* is in use by process"):
            world.run(copy(), once=once, state_dir=world.folder / "elsewhere")
    assert first.close(WAIT_S)
    world.run(copy())


def test_an_application_cannot_be_started_twice(world: World) -> None:
    world.create("in")
    streams = world.run(copy())
    with pytest.raises(StateError, match="NOT_RUNNING"):
        streams.start()
    with pytest.raises(ConfigError, match="exclude each other"):
        world.streams(copy()).start(once=True, until_end=True)


@pytest.mark.slow
def test_brokers_that_do_not_answer_are_named(world: World) -> None:
    assert "bootstrap.servers=localhost:1 " in str(failure(world, copy(), bootstrap_servers="localhost:1"))


class FullDisk(Disk):
    """A disk that takes so many bytes and no more, until it is given room."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        self.room -= sum(memoryview(part).nbytes for part in parts)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write_at(fd, parts, position)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_full_disk_ends_the_run_and_loses_nothing(world: World, guarantee: str) -> None:
    world.create("lines", 2)
    world.write("lines", lines(2000))
    disk = FullDisk(30_000)
    settings = {**world.settings, "processing.guarantee": guarantee, "commit.interval.ms": 0, "max.poll.records": 100}
    with open_log(world.settings["log.dir"], disk=disk) as log:
        streams = KafkaStreams(word_count(), settings, log=log)
        with pytest.raises(LogError, match="full"):
            to_the_end(streams)
        assert streams.state is State.ERROR
    world.run(word_count(), processing_guarantee=guarantee)
    found, exact = world.table("counts", value=int), counted(2000)
    assert found == exact if guarantee == "exactly_once_v2" else all(found[word] >= exact[word] for word in exact)

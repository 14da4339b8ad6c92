"""Counters only rise, and lose nothing, while tasks move, threads come, go and die, and restores are given up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import kstreams as ks
from kstreams import StreamThreadExceptionResponse as Response
from kstreams.metrics.catalogue import NODE, TASK, TEMPLATES, THREAD, TOPIC, UPDATER
from kstreams.metrics.template import MetricKind, MetricName
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.state.restore import RestoreProgress
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server.ui.activity import activity_of
from tests.native.metrics.measured import TEXTS, Ticking, counts, one
from tests.native.world import World, until

SETTINGS: dict[str, Any] = {"poll_ms": 5, "commit_interval_ms": 20, "num_stream_threads": 2}
ROWS = [(key, "a b", 1_000) for key in "abcdefgh"]


def ticking(fails: Callable[[], bool] = lambda: False) -> ks.Topology:
    """Counts records and words, and drops those without a key."""

    def check(key: str, value: str) -> bool:
        if fails():
            raise ValueError("now")
        return True

    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS).filter(check).process_values(Ticking, name="ticking", value=str)
    words.to("out")
    words.group_by_key().count("counts")
    return builder.build()


def total(streams: KafkaStreams, group: str, name: str) -> float:
    return sum(float(value) for metric, value in streams.metrics().items() if metric[:2] == (group, name))


def counters(streams: KafkaStreams) -> dict[MetricName, float]:
    found = streams.metrics().items()
    return {
        name: float(value)
        for name, value in found
        if name.tag("sensor") is None and TEMPLATES[name[:2]].kind is MetricKind.COUNTER
    }


def falls(before: Mapping[MetricName, float], now: Mapping[MetricName, float]) -> list[Any]:
    return [(name, value, now.get(name)) for name, value in before.items() if now.get(name, 0) < value]


@contextmanager
def watched(streams: KafkaStreams) -> Iterator[list[Any]]:
    """Looks again and again; what has fallen."""
    fallen, ended = list[Any](), threading.Event()

    def look() -> None:
        before = counters(streams)
        while not ended.is_set():
            now = counters(streams)
            fallen.extend(falls(before, now))
            before = now

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield fallen
    finally:
        ended.set()
        looking.join()


def settled(streams: KafkaStreams, records: int) -> None:
    until(lambda: streams.state is State.RUNNING and streams.progress().records_in == records)


def assert_that_all_is_counted(streams: KafkaStreams, records: int, dropped: int) -> None:
    until(lambda: total(streams, TOPIC, "records-produced-total") == records)
    assert total(streams, THREAD, "process-total") == records
    assert total(streams, NODE, "process-total") == records
    assert total(streams, TOPIC, "records-consumed-total") == records
    assert total(streams, TASK, "dropped-records-total") == dropped
    assert total(streams, NODE, "words-total") == 2 * records
    read = [each.count for each in activity_of(streams, "here").counts if each.kind == "read"]
    assert len(read) <= 2
    assert sum(read) == records


def test_while_tasks_move_between_threads(world: World) -> None:
    world.create("in", 2)
    world.create("out")
    rows = [*ROWS, (None, "no key", 1_000)]
    with world.streams(ticking(), **SETTINGS) as running, watched(running) as fallen:
        running.start()
        for turn in range(1, 4):
            world.write("in", rows)
            settled(running, len(rows) * turn)
            assert running.remove_stream_thread() == "app-StreamThread-2"
            settled(running, len(rows) * turn)
            assert running.add_stream_thread() == "app-StreamThread-2"
        settled(running, len(rows) * 3)
        assert_that_all_is_counted(running, len(rows) * 3, 3)
    assert not fallen


def test_while_threads_die_and_are_replaced(world: World) -> None:
    fails = threading.Event()

    def check() -> bool:
        failing = fails.is_set()
        fails.clear()
        return failing

    world.create("in", 2)
    world.create("out")
    with world.streams(ticking(check), **SETTINGS, processing_guarantee="exactly_once_v2") as running:
        running.set_uncaught_exception_handler(lambda error: Response.REPLACE_THREAD)
        with watched(running) as fallen:
            running.start()
            world.write("in", ROWS)
            settled(running, 8)
            fails.set()
            world.write("in", ROWS)
            until(
                lambda: (
                    running.progress().records_in >= 16
                    and total(running, "stream-metrics", "failed-stream-threads") == 1
                )
            )
            until(lambda: total(running, NODE, "words-total") >= 32)
        assert total(running, THREAD, "process-total") >= 16
    assert not fallen


def test_while_tasks_leave_and_come_back(world: World) -> None:
    world.create("in", 2)
    world.create("out")
    world.write("in", ROWS)
    here = {**SETTINGS, "num_stream_threads": 1}
    with world.streams(ticking(), **here, state_dir=world.folder / "one") as first, watched(first) as fallen:
        first.start()
        settled(first, 8)
        until(lambda: total(first, TOPIC, "records-produced-total") == 8)
        with world.streams(ticking(), **here, state_dir=world.folder / "two") as second:
            second.start()
            until(lambda: [len(tasks_of(each)) for each in (first, second)] == [1, 1])
            assert total(first, THREAD, "process-total") == total(first, NODE, "process-total") == 8
        until(lambda: len(tasks_of(first)) == 2 and first.state is State.RUNNING)
        assert_that_all_is_counted(first, 8, 0)
    assert not fallen


def tasks_of(streams: KafkaStreams) -> list[str]:
    return [task.task_id for thread in streams.metadata_for_local_threads() for task in thread.tasks]


def test_a_restore_that_was_given_up_lacks_nothing(world: World) -> None:
    world.create("in")
    with world.streams(counts(), poll_ms=5) as running:
        running.start()
        until(lambda: running.state is State.RUNNING)
        assert isinstance(running._client, RunningClient)
        running._client.restores["0_9", "counts"] = RestoreProgress("0_9", "counts", 10, 100)
        assert one(running, UPDATER, "restore-remaining-records-total", task_id="0_9") == 0
        assert one(running, TASK, "restore-remaining-records-total", task_id="0_9") == 0


def test_how_far_standbys_are_behind_is_told(world: World) -> None:
    world.create("in", 2)
    both = {"num_standby_replicas": 1, "commit_interval_ms": 20, "poll_ms": 5}
    with (
        world.streams(counts(), state_dir=world.folder / "one", **both) as first,
        world.streams(counts(), state_dir=world.folder / "two", **both) as second,
    ):
        first.start()
        second.start()
        world.write("in", ROWS)
        until(lambda: {name for each in (first, second) for name in lagging(each)} == {"0_0", "0_1"})
        until(lambda: [*lagging(first).values(), *lagging(second).values()] == [0, 0])
        names = {metric.name for each in (first, second) for metric in each.metrics()}
        assert {"update-rate", "update-total"} <= names


def lagging(streams: KafkaStreams) -> dict[str, float]:
    found = streams.metrics().items()
    return {name.tag("task-id") or "": float(value) for name, value in found if name[:2] == (TASK, "standby-lag")}

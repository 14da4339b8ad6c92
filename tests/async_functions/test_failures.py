"""An async call that fails, or takes too long, goes the way of a plain function that raises; nothing is lost."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError
from kstreams.kernel.clock import ManualClock
from tests.async_functions.running import run
from tests.native.stepped import stepped
from tests.native.world import World

ROWS = [("k", value, time) for time, value in enumerate(["1", "2", "x", "4"])]


async def number(value: str) -> str:
    return str(int(value))


async def stuck_on_x(value: str) -> str:
    if value == "x":
        await asyncio.Event().wait()
    return value


def mapped(function: Any, **calls: Any) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(function, **calls).to("out")
    return builder


@pytest.mark.parametrize(
    ("function", "cause"), [(number, ValueError), (stuck_on_x, TimeoutError)], ids=["raises", "takes too long"]
)
def test_a_failure_names_the_operator_the_line_and_the_record(function: Any, cause: type) -> None:
    with pytest.raises(
        ProcessingError, match=r"map_values\(\) at .* \(KSTREAM-MAPVALUES-0000000001\) .*in-0@2"
    ) as caught:
        run(mapped(function, timeout=50), ROWS)
    assert isinstance(caught.value.cause, cause)


def test_the_timeout_may_come_from_the_configuration() -> None:
    with pytest.raises(ProcessingError, match=r"took longer than 0\.05 s: give it more by timeout="):
        run(mapped(stuck_on_x), ROWS, async_timeout_ms=50)


def test_a_timeout_of_the_users_own_keeps_its_words() -> None:
    async def give_up(value: str) -> str:
        raise TimeoutError("the service said so")

    with pytest.raises(ProcessingError, match="TimeoutError: the service said so"):
        run(mapped(give_up), ROWS)


@pytest.mark.parametrize("ordered", [True, "by_key", False])
def test_a_handler_that_continues_leaves_out_the_record_that_failed(ordered: Any) -> None:
    found = run(mapped(number, ordered=ordered), ROWS, processing_exception_handler="continue")
    assert sorted(value for _, value, _ in found) == ["1", "2", "4"]


def test_it_is_told_of_the_record_that_failed() -> None:
    told: list[Any] = []

    def handler(context: Any, record: Any, error: Exception) -> Any:
        told.append((context.processor_node_id, context.offset, record.value, record.timestamp, type(error)))
        return ks.Response.resume()

    found = run(mapped(number), ROWS, processing_exception_handler=handler)
    assert [value for _, value, _ in found] == ["1", "2", "4"]
    assert told == [("KSTREAM-MAPVALUES-0000000001", 2, "x", 2, ValueError)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.create("in", 2)
    world.create("out", 2)
    return world


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_commit_waits_for_the_calls_under_way(world: World, guarantee: str) -> None:
    ended: list[str] = []
    all_started = asyncio.Event()

    async def together(value: str) -> str:
        if value == "3":
            all_started.set()
        await all_started.wait()
        ended.append(value)
        return value

    world.write("in", [("a", str(number), number) for number in range(4)], 0)
    with stepped(world, mapped(together, concurrency=10).build(), ManualClock(), processing_guarantee=guarantee) as app:
        app.work()
        assert sorted(ended) == ["0", "1", "2", "3"]
        assert [row.value for row in world.rows("out")] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_what_a_failed_call_left_uncommitted_is_done_again(world: World, guarantee: str) -> None:
    world.write("in", [(str(i), str(i), i) for i in range(50)])
    calls = []

    async def fragile(value: str) -> str:
        calls.append(value)
        if len(calls) == 20:
            raise OSError("the service is away")
        return value

    def counting(function: Any) -> ks.Topology:
        builder = ks.StreamsBuilder()
        values = builder.stream("in", key=str, value=str).map_values(function, concurrency=7)
        values.group_by_key().count(materialized="counts").to_stream().to("out", value=int)
        return builder.build()

    streams = world.streams(counting(fragile), processing_guarantee=guarantee)
    streams.start(until_end=True)
    with pytest.raises(ProcessingError, match="the service is away"):
        streams.wait(60)
    world.run(counting(number), processing_guarantee=guarantee)
    assert world.table("out", value=int) == {str(i): 1 for i in range(50)}


async def leaves_at_x(value: str) -> str:
    if value == "x":
        sys.exit("that is all")
    return value


def test_a_call_that_exits_ends_its_run_and_not_the_thread_of_all_calls() -> None:
    for _ in range(2):
        with pytest.raises((SystemExit, ProcessingError), match="that is all"):
            run(mapped(leaves_at_x), ROWS)
    assert run(mapped(stuck_on_x), ROWS[:2])

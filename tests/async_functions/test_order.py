"""How many calls run at once, and in which order their results go on. Delays are events that other calls set."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.processor.api.contexts import RecordContext
from kstreams.testing import TopologyTestDriver
from tests.async_functions.running import Row, run, run_topics
from tests.native.world import World


class Gates:
    """Calls that wait for each other."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.ended: list[str] = []

    async def after(self, value: str) -> str:
        """`value` is "name" or "name>other": the call named other ends first."""
        name, _, other = value.partition(">")
        if other:
            await self._events[other].wait()
        self.ended.append(name)
        self._events[name].set()
        return name


def rows(*values: str) -> list[Row]:
    return [(value[0], value, time) for time, value in enumerate(values)]


def names(found: list[Row]) -> list[str]:
    return [value for _, value, _ in found]


def mapped(gates: Gates, **calls: Any) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(gates.after, value=str, **calls).to("out")
    return builder


BACKWARDS = rows("a1>a2", "a2>b3", "b3>b4", "b4")


def test_results_go_on_in_the_order_of_their_records() -> None:
    gates = Gates()
    assert names(run(mapped(gates), BACKWARDS)) == ["a1", "a2", "b3", "b4"]
    assert gates.ended == ["b4", "b3", "a2", "a1"]


def test_without_order_they_go_on_as_they_come() -> None:
    gates = Gates()
    found = names(run(mapped(gates, ordered=False, concurrency=2), rows("a1>b3", "a2", "b3")))
    assert found == gates.ended == ["a2", "b3", "a1"]


def test_by_key_only_records_of_one_key_wait_for_each_other() -> None:
    gates = Gates()
    found = names(run(mapped(gates, ordered="by_key"), rows("a1>b3", "a2", "b3")))
    assert gates.ended == ["a2", "b3", "a1"]
    assert found == ["b3", "a1", "a2"]


@pytest.mark.parametrize("settings", [{"concurrency": 3}, {}], ids=["operator", "configuration"])
def test_so_many_calls_run_at_once_and_no_more(settings: dict[str, Any]) -> None:
    running, most, full = 0, 0, asyncio.Event()

    async def count(value: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await full.wait()
        running -= 1
        return value

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(count, value=str, **settings).to("out")
    found = run(builder, rows(*"abcdefg"), async_concurrency=3)
    assert names(found) == list("abcdefg")
    assert most == 3


def test_a_result_goes_on_with_time_headers_and_place_of_its_record() -> None:
    seen: list[Any] = []

    class Look(ks.Processor[str, str, str, str]):
        def init(self, context: Any) -> None:
            self.context = context

        def process(self, record: ks.Record[str, str]) -> None:
            metadata = self.context.record_metadata()
            seen.append((record.value, record.timestamp, self.context.current_stream_time_ms(), metadata.offset))

    gates, builder = Gates(), ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(gates.after, value=str).process(Look)
    with TopologyTestDriver(builder.build(), {"statestore.cache.max.bytes": 0}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        values = [("a1>a2", 7), ("a2", 9), ("a3", 8)]
        driver.pipe_batch([(topic, ks.Record(key="k", value=value, timestamp=time)) for value, time in values])
    assert seen == [("a1", 7, 7, 0), ("a2", 9, 9, 1), ("a3", 8, 9, 2)]


def test_headers_are_those_of_the_record() -> None:
    gates, builder = Gates(), ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(gates.after, value=str).to("out")
    with TopologyTestDriver(builder.build(), {"statestore.cache.max.bytes": 0}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        sent = [("a1>a2", (("h", b"1"),)), ("a2", ()), ("a3", (("h", b"3"),))]
        driver.pipe_batch(
            [(topic, ks.Record(key="k", value=value, timestamp=1, headers=headers)) for value, headers in sent]
        )
        found = driver.create_output_topic("out", key=str, value=str).read_records()
    assert [(record.value, record.headers) for record in found] == [("a1", sent[0][1]), ("a2", ()), ("a3", sent[2][1])]


def test_a_topic_chosen_per_record_is_chosen_for_that_record() -> None:
    def choose(key: str, value: str, context: RecordContext) -> str:
        return "out" if context.offset == 0 else "other"

    gates, builder = Gates(), ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(gates.after, value=str).to(choose)
    assert names(run(builder, rows("a1>a2", "a2"))) == ["a1"]


def test_a_table_is_looked_up_as_it_was_when_the_record_came() -> None:
    gates, builder = Gates(), ks.StreamsBuilder()
    table = builder.table("table", key=str, value=str, materialized="table")
    stream = builder.stream("in", key=str, value=str).map_values(gates.after, value=str)
    stream.join(table, lambda left, right: f"{left}+{right}").to("out", value=str)
    topics = [("table", "a", "old", 0), ("in", "a", "a1", 1), ("table", "a", "new", 2), ("in", "a", "a2", 3)]
    assert names(run_topics(builder, topics)) == ["a1+old", "a2+new"]


def test_ways_that_meet_again_keep_the_order_of_records() -> None:
    gates, builder = Gates(), ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    slow = stream.filter(lambda key, _: key == "s").map_values(gates.after, value=str)
    slow.merge(stream.filter(lambda key, _: key == "f")).to("out")
    assert names(run(builder, rows("s1", "f2", "s3", "s4", "f5"))) == ["s1", "f2", "s3", "s4", "f5"]


def test_a_fork_into_one_topic_keeps_the_order_of_records() -> None:
    gates, builder = Gates(), ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.map_values(gates.after, value=str).to("out")
    stream.map_values(lambda value: value + "'", value=str).to("out")
    assert names(run(builder, rows("a1", "a2"))) == ["a1", "a1'", "a2", "a2'"]


def test_an_application_may_run_inside_of_a_loop_as_in_a_notebook() -> None:
    async def notebook() -> list[Row]:
        return run(mapped(Gates()), rows("a1>a2", "a2"))

    assert names(asyncio.run(notebook())) == ["a1", "a2"]


def test_one_client_serves_all_tasks_and_threads(tmp_path: Path) -> None:
    world, loops = World(tmp_path), set()
    world.create("in", 4)
    world.create("out", 4)

    async def loop_of(value: str) -> str:
        loops.add(id(asyncio.get_running_loop()))
        return value

    world.write("in", [(str(number), "x", number) for number in range(20)])
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(loop_of).to("out")
    world.run(builder.build(), num_stream_threads=2)
    assert len(world.rows("out")) == 20
    assert len(loops) == 1

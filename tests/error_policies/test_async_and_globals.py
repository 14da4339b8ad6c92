"""Failures of awaited calls, and of what fills global tables."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, SerdeError
from kstreams.testing import TopologyTestDriver
from tests.error_policies.engines import ENGINES, LETTERS, row


async def number(value: str) -> int:
    await asyncio.sleep(0)
    return int(value)


async def numbers(value: str) -> list[int]:
    return [await number(value)]


def mapped() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(number, value=int).to("out")
    return builder.build()


def flat_mapped() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).flat_map_values(numbers, value=int).to("out")
    return builder.build()


@pytest.mark.parametrize("run", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("build", [mapped, flat_mapped])
def test_an_awaited_call_that_fails_is_a_failure_of_its_own_record(run: Any, build: Any) -> None:
    rows = [row(b"1"), row(b"x"), row(b"2"), row(b"y"), row(b"3")]
    settings = {"processing_exception_handler": "continue", "errors_dead_letter_queue_topic_name": LETTERS}
    seen = run(build, rows, **settings)
    assert seen.error is None
    assert [int.from_bytes(value) for value in seen.values()] == [1, 2, 3]
    assert [letter.value for letter in seen.letters] == [b"x", b"y"]
    assert list(seen.dropped.values()) == [2]


class Numbers(ks.Processor[str, str, None, None]):
    def init(self, context: Any) -> None:
        self.store = context.get_state_store("numbers")

    def process(self, record: Any) -> None:
        self.store.put(record.key, int(record.value))


def global_driver(**settings: Any) -> TopologyTestDriver:
    builder = ks.StreamsBuilder()
    store = ks.Stores.key_value("numbers", key=str, value=int, store="memory", logging=False)
    builder.add_global_store(store, "numbers", Numbers, key=str, value=str)
    builder.stream("in", key=str, value=str).to("out")
    return TopologyTestDriver(builder.build(), {key.replace("_", "."): value for key, value in settings.items()})


def fill(driver: TopologyTestDriver, *values: bytes) -> dict[Any, Any]:
    topic = driver.create_input_topic("numbers", key=str, value=bytes)
    for at, value in enumerate(values):
        topic.pipe_input(f"k{at}", value)
    return {f"k{at}": driver.get_key_value_store("numbers").get(f"k{at}") for at in range(len(values))}


def test_a_global_store_asks_the_processing_handler_only_if_it_is_told_to() -> None:
    with global_driver(processing_exception_handler="continue") as driver, pytest.raises(ProcessingError):
        fill(driver, b"1", b"x")
    settings = {"processing.exception.handler.global.enabled": True}
    with global_driver(processing_exception_handler="continue", **settings) as driver:
        assert fill(driver, b"1", b"x", b"3") == {"k0": 1, "k1": None, "k2": 3}
        assert list(driver.dropped.values()) == [1]


def test_a_global_store_asks_the_deserialization_handler_and_writes_no_dead_letter() -> None:
    with global_driver() as driver, pytest.raises(SerdeError):
        fill(driver, b"\xff")
    with global_driver(
        deserialization_exception_handler="continue", errors_dead_letter_queue_topic_name=LETTERS
    ) as driver:
        assert fill(driver, b"1", b"\xff", b"3") == {"k0": 1, "k1": None, "k2": 3}
        assert LETTERS not in driver.produced_topic_names()

"""No thread dies unnoticed, whatever is raised in it and wherever: the state is ERROR, and `wait` raises it."""

from __future__ import annotations

from typing import Any

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from tests.native.world import WAIT_S, World

TEXTS = {"key": str, "value": str}


class Beyond(BaseException):
    """Not an Exception."""


def raising(*arguments: Any) -> Any:
    raise Beyond("from a callback")


def ends_with(streams: ks.KafkaStreams, error: type[BaseException]) -> None:
    with pytest.raises(error, match="from a callback"):
        streams.wait(WAIT_S)
    assert streams.state is State.ERROR


@pytest.fixture
def filled(world: World) -> World:
    for topic in ("in", "places"):
        world.create(topic)
    world.write("in", [("k", "v", 1)])
    return world


def test_in_an_operator(filled: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).map_values(raising, value=str).to("out")
    streams = filled.streams(builder)
    streams.start()
    ends_with(streams, Beyond)


def test_in_the_handler_of_uncaught_exceptions(filled: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).map_values(lambda value: 1 // 0, value=int).to("out")
    streams = filled.streams(builder)
    streams.set_uncaught_exception_handler(raising)
    streams.start()
    with pytest.raises(ks.errors.ProcessingError, match="ZeroDivisionError"):
        streams.wait(WAIT_S)
    assert streams.state is State.ERROR


class Filling(ks.Processor[str, str, Any, Any]):
    """Fills a global store, for a while."""

    def process(self, record: Any) -> None:
        if record.value == "bad":
            raising()


def test_in_the_thread_of_the_global_tables(filled: World) -> None:
    builder = ks.StreamsBuilder()
    store = ks.Stores.key_value("places", key=str, value=str, logging=False)
    builder.add_global_store(store, "places", Filling, key=str, value=str)
    builder.stream("in", **TEXTS).to("out")
    streams = filled.streams(builder)
    streams.start()
    filled.write("places", [("k", "bad", 1)])
    ends_with(streams, Beyond)


@pytest.mark.parametrize("at", [State.RUNNING, State.PENDING_SHUTDOWN])
def test_in_a_state_listener(filled: World, at: State) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).to("out")
    streams = filled.streams(builder)
    streams.set_state_listener(lambda new, old: raising() if new is at else None)
    streams.start(until_end=True)
    with pytest.raises(Beyond, match="from a callback"):
        streams.wait(WAIT_S)


def test_in_on_restore(filled: World) -> None:
    import shutil

    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).group_by_key().count("counts").to_stream().to("out", key=str, value=int)
    filled.run(builder, once=True)
    shutil.rmtree(filled.settings["state.dir"])
    streams = ks.KafkaStreams(builder, filled.settings, on_restore=raising)
    streams.start()
    ends_with(streams, Beyond)

"""A thread that does not come back from the user's function is reported, with the operator's name."""

from __future__ import annotations

import threading
from time import monotonic, sleep

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from tests.native.world import WAIT_S, World, until


def test_the_operator_that_does_not_return_is_named(world: World, caplog: pytest.LogCaptureFixture) -> None:
    going_on = threading.Event()

    def wait(value: str) -> str:
        going_on.wait(WAIT_S)
        return value

    world.create("in")
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(wait, value=str).to("out")
    with world.streams(builder, task_timeout_ms=1_000) as streams:
        streams.start()
        until(lambda: streams.state is State.RUNNING)
        caplog.clear()  # a start may take longer, too
        world.write("in", [("k", "v", 1)])
        end = monotonic() + WAIT_S
        while "has not come back from map_values()" not in caplog.text:
            assert monotonic() < end
            sleep(0.05)
        assert "of task 0_0" in streams.current_operators()
        going_on.set()
        while not world.rows("out"):
            assert monotonic() < end
            sleep(0.05)
    assert caplog.text.count("has not come back") == 1

"""What the handler of uncaught exceptions answers: another thread, or the end of the client or of the application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kstreams as ks
from kstreams import StreamThreadExceptionResponse as Answer
from kstreams.errors import ProcessingError, StateError
from kstreams.runtime.native.lifecycle import State, ThreadState
from kstreams.runtime.native.uncaught_exceptions import ApplicationShutdownError
from tests.native.world import WAIT_S, World

GUARANTEES = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


class Stumbles:
    """Fails at some records, each as often as it is told to."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, value: str) -> str:
        if value == "stone" and self.left:
            self.left -= 1
            raise RuntimeError("stumbled")
        return value


def counting(function: Callable[[str], str]) -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", key=str, value=str).map_values(function, value=str)
    words.group_by_key().count(materialized="counts").to_stream().to("out", value=int)
    return builder.build()


@GUARANTEES
def test_a_replaced_thread_goes_on_from_the_last_commit_with_rebuilt_tasks(world: World, guarantee: str) -> None:
    world.create("in")
    world.write("in", [("k", "step", i) for i in range(50)])
    world.run(counting(str), once=True, processing_guarantee=guarantee)
    world.write("in", [("k", "stone", 60), ("k", "step", 61)])
    told: list[BaseException] = []
    states: list[State] = []

    def answer(error: BaseException) -> Answer:
        told.append(error)
        return Answer.REPLACE_THREAD

    streams = world.streams(counting(Stumbles(3)), processing_guarantee=guarantee)
    streams.set_uncaught_exception_handler(answer)
    streams.set_state_listener(lambda new, old: states.append(new))
    streams.start(once=True)
    assert streams.wait(WAIT_S)
    assert streams.state is State.NOT_RUNNING
    assert [type(error) for error in told] == [ProcessingError] * 3
    assert states.count(State.REBALANCING) == states.count(State.RUNNING) == 4
    assert world.table("out", value=int) == {"k": 52}


def test_the_other_threads_go_on_while_one_is_replaced(world: World) -> None:
    world.create("in", 4)
    for partition in range(4):
        world.write("in", [("k", "stone" if partition == 2 else "step", 1)] * 10, partition)
    streams = world.streams(counting(Stumbles(2)), num_stream_threads=4)
    streams.set_uncaught_exception_handler(lambda error: Answer.REPLACE_THREAD)
    streams.start(until_end=True)
    assert streams.wait(WAIT_S)
    assert [rows[-1].value for rows in world.partitions("app-counts-changelog", value=int)] == [10] * 4
    assert streams.state is State.NOT_RUNNING


def test_a_store_of_a_replaced_thread_says_to_get_it_again(world: World) -> None:
    world.create("in")
    world.write("in", [("k", "step", 1)])
    streams = world.streams(counting(Stumbles(1)), poll_ms=5)
    streams.set_uncaught_exception_handler(lambda error: Answer.REPLACE_THREAD)
    states: list[State] = []
    streams.set_state_listener(lambda new, old: states.append(new))
    with streams:
        streams.start()
        while streams.state is not State.RUNNING:
            streams.wait(0.01)
        before = streams.store("counts")
        world.write("in", [("k", "stone", 2)])
        while states.count(State.RUNNING) < 2:
            streams.wait(0.01)
        assert streams.state is State.RUNNING
        with pytest.raises(StateError, match=r"another thread .* KafkaStreams.store"):
            before.get("k")
        assert streams.store("counts").get("k") is not None


@pytest.mark.parametrize("handler", [lambda error: Answer.SHUTDOWN_CLIENT, lambda error: None, None])
def test_without_an_answer_the_client_shuts_down(world: World, handler: Any) -> None:
    world.create("in")
    world.write("in", [("k", "stone", 1)])
    streams = world.streams(counting(Stumbles(1)))
    states: list[State] = []
    streams.set_state_listener(lambda new, old: states.append(new))
    if handler is not None:
        streams.set_uncaught_exception_handler(handler)
    streams.start()
    with pytest.raises(ProcessingError):
        streams.wait(WAIT_S)
    assert states[-2:] == [State.PENDING_ERROR, State.ERROR]
    assert [thread.state for thread in streams.metadata_for_local_threads()] == [ThreadState.DEAD]


def test_shutting_down_the_application_reaches_all_its_processes(world: World) -> None:
    world.create("in", 2)
    topology = counting(Stumbles(10**9))
    asking, asked = world.streams(topology), world.streams(topology)
    for streams, answer in ((asking, Answer.SHUTDOWN_APPLICATION), (asked, Answer.SHUTDOWN_APPLICATION)):
        streams.set_uncaught_exception_handler(lambda error, answer=answer: answer)
        streams.start()
    world.write("in", [("k", "stone", 1)])
    errors = []
    for streams in (asking, asked):
        with pytest.raises((ProcessingError, ApplicationShutdownError)) as raised:
            streams.wait(WAIT_S)
        errors.append(type(raised.value))
        assert streams.state is State.ERROR
    assert set(errors) == {ProcessingError, ApplicationShutdownError}


def test_who_starts_later_is_not_asked_and_a_handler_does_not_answer_for_it(world: World) -> None:
    world.create("in")
    world.write("in", [("k", "stone", 1)])
    asking = world.streams(counting(Stumbles(1)))
    asking.set_uncaught_exception_handler(lambda error: Answer.SHUTDOWN_APPLICATION)
    asking.start()
    with pytest.raises(ProcessingError):
        asking.wait(WAIT_S)
    later = world.streams(counting(str))
    later.start()
    assert not later.wait(0.3)
    assert later.close(WAIT_S)


def test_handlers_and_listeners_are_set_before_the_start(world: World) -> None:
    world.create("in")
    streams = world.streams(counting(str))
    streams.start()
    with pytest.raises(StateError, match="before it is started"):
        streams.set_uncaught_exception_handler(lambda error: Answer.SHUTDOWN_CLIENT)
    with pytest.raises(StateError, match="before it is started"):
        streams.set_state_listener(lambda new, old: None)
    assert streams.close(WAIT_S)
    assert [thread.state for thread in streams.metadata_for_local_threads()] == [ThreadState.DEAD]


def test_an_application_that_is_being_closed_replaces_no_thread(world: World) -> None:
    world.create("in")
    world.write("in", [("k", "stone", 1)])
    streams = world.streams(counting(Stumbles(10**9)))

    def answer(error: BaseException) -> Answer:
        streams.close(0)
        return Answer.REPLACE_THREAD

    streams.set_uncaught_exception_handler(answer)
    streams.start()
    with pytest.raises(ProcessingError):
        streams.wait(WAIT_S)
    assert streams.state is State.ERROR


def test_an_error_that_is_a_cause_of_its_own_cause_ends_the_application_like_any_other(world: World) -> None:
    def circular(value: str) -> str:
        first = ValueError("first")
        try:
            raise KeyError("second") from first
        except KeyError:
            raise first  # noqa: B904  (the second is its context now, and has it as its cause)

    world.create("in")
    world.write("in", [("k", "step", 0)])
    streams = world.streams(counting(circular))
    streams.start(once=True)
    with pytest.raises(ProcessingError, match="first"):
        assert streams.wait(WAIT_S)

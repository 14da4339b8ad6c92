"""Records that a topic refuses: too large, without a key it asks for, no room for the time being; changelogs too."""

from __future__ import annotations

from typing import Any

import pytest

import kstreams as ks
from kstreams import ErrorHandlerContext, ProducerRecord, Response
from kstreams.errors import BufferFullError, LogError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.runtime.native.thread.sink_buffer import SendRetry
from tests.native.world import WAIT_S, World

GUARANTEES = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


def copy() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(lambda v: v * 1000 if v == "big" else v, value=str).to("out")
    return builder.build()


def in_columns() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).filter(ks.value != "nothing").to("out")
    return builder.build()


@pytest.fixture
def topics(world: World) -> World:
    world.create("in")
    world.create("letters")
    world.create("out", max_message_bytes="1500")
    return world


@GUARANTEES
def test_continue_leaves_out_what_is_too_large(topics: World, guarantee: str) -> None:
    topics.write("in", [("a", "small", 1), ("b", "big", 2), ("c", "tiny", 3)])
    streams = topics.run(
        copy(),
        production_exception_handler="continue",
        errors_dead_letter_queue_topic_name="letters",
        processing_guarantee=guarantee,
    )
    assert [row.value for row in topics.rows("out")] == ["small", "tiny"]
    assert [(row.key, row.value) for row in topics.rows("letters")] == [("b", "big")]
    assert list(streams.progress().dropped.values()) == [1]


def test_fail_ends_the_run(topics: World) -> None:
    topics.write("in", [("b", "big", 2)])
    streams = topics.streams(copy())
    streams.start(until_end=True)
    with pytest.raises(LogError, match="too large"):
        streams.wait(WAIT_S)


def test_a_function_sees_the_record_and_where_it_came_from(topics: World) -> None:
    asked: list[tuple[ErrorHandlerContext, ProducerRecord, Exception]] = []

    def handler(context: ErrorHandlerContext, record: ProducerRecord, error: Exception) -> Response:
        asked.append((context, record, error))
        return Response.resume()

    topics.write("in", [("a", "small", 1), ("b", "big", 2)])
    topics.run(copy(), production_exception_handler=handler)
    ((context, record, error),) = asked
    assert (context.topic, context.offset, context.source_raw_value, context.origin) == ("in", 1, b"big", None)
    assert (record.topic, record.key, record.value) == ("out", b"b", b"big" * 1000)
    assert isinstance(error, LogError)


def test_in_columns_it_is_the_same(topics: World) -> None:
    rows = [(str(i), "x" * 5000 if i == 150 else "small", i) for i in range(300)]
    topics.write("in", rows)
    topics.run(in_columns(), production_exception_handler="continue", columns_min_rows=1)
    assert len(topics.rows("out")) == 299


def test_a_compacted_topic_wants_keys(world: World) -> None:
    world.create("in")
    world.create("out", cleanup_policy="compact")
    world.write("in", [("a", "1", 1), (None, "2", 2), ("c", "3", 3)])
    world.run(copy(), production_exception_handler="continue")
    assert [row.value for row in world.rows("out")] == ["1", "3"]


@GUARANTEES
def test_changelogs_are_topics_too(world: World, guarantee: str) -> None:
    world.create("in")
    world.create("letters")
    builder = ks.StreamsBuilder()
    table = builder.table("in", key=str, value=str, materialized="rows")
    table.to_stream().map_values(len, value=int).to("out")
    world.write("in", [("a", "small", 1), ("b", "x" * 3000, 2)])
    asked: list[Any] = []

    def handler(context: ErrorHandlerContext, record: ProducerRecord, error: Exception) -> Response:
        asked.append((record.topic, record.key, context.processor_node_id))
        return Response.resume([ProducerRecord("letters", record.key, b"too large")])

    world.run(
        builder.build(),
        production_exception_handler=handler,
        processing_guarantee=guarantee,
        topic_max_message_bytes="1500",
    )
    assert asked == [("app-rows-changelog", b"b", "rows")]
    assert [row.value for row in world.rows("out", value=int)] == [5, 3000]
    assert [row.value for row in world.rows("letters")] == ["too large"]
    assert [row.key for row in world.rows("app-rows-changelog")] == ["a"]


class Full:
    """A producer without room for some tries, each of which takes a second."""

    def __init__(self, clock: ManualClock, tries: int) -> None:
        self.clock, self.left, self.sent = clock, tries, 0

    def send_batch(self, batch: Batch, on_delivery: object = None) -> None:
        self.clock.advance(1000)
        if self.left:
            self.left -= 1
            raise BufferFullError("no room")
        self.sent += len(batch)


def send(handler: Any, tries: int, timeout_ms: int = 10_000) -> int:
    clock = ManualClock()
    full = Full(clock, tries)
    batch = Batch.of_rows(TopicPartition("out", 0), [Row(b"k", b"v", 1, ())])
    SendRetry(handler, timeout_ms, clock).send(full, batch)  # type: ignore[arg-type]
    return full.sent


@pytest.mark.parametrize("handler", ["retry", lambda context, record, error: Response.retry()])
def test_retry_tries_again_until_there_is_room(handler: Any) -> None:
    assert send(handler, tries=5) == 1


@pytest.mark.parametrize("handler", ["retry", lambda context, record, error: Response.retry()])
def test_retry_ends_after_the_time_out_of_tasks(handler: Any) -> None:
    with pytest.raises(BufferFullError):
        send(handler, tries=11)
    assert send(handler, tries=11, timeout_ms=20_000) == 1


@pytest.mark.parametrize("handler", ["fail", "continue"])
def test_what_has_no_room_now_is_left_out_by_nobody(handler: str) -> None:
    with pytest.raises(BufferFullError):
        send(handler, tries=1)


class Signed(ks.Processor[str, str, str, str]):
    """Signs what it passes on; what is called `odd` with a name that UTF-8 cannot spell."""

    def init(self, context: ks.ProcessorContext) -> None:
        self.context = context

    def process(self, record: ks.Record[str, str]) -> None:
        name = "\ud800" if record.value == "odd" else "by"
        self.context.forward(record.with_headers([(name, b"me")]))


def signed() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).process(Signed, key=str, value=str, name="sign").to("out", name="write")
    return builder.build()


@GUARANTEES
def test_a_record_with_headers_that_no_topic_can_hold_is_left_out_alone(topics: World, guarantee: str) -> None:
    topics.write("in", [("a", "even", 1), ("b", "odd", 2), ("c", "even", 3)])
    streams = topics.run(
        signed(),
        production_exception_handler="continue",
        errors_dead_letter_queue_topic_name="letters",
        processing_guarantee=guarantee,
    )
    assert [row.key for row in topics.rows("out")] == ["a", "c"]
    assert [(row.key, row.value) for row in topics.rows("letters")] == [("b", "odd")]
    assert list(streams.progress().dropped.values()) == [1]


@GUARANTEES
def test_without_a_handler_the_error_names_operator_line_and_input_record(topics: World, guarantee: str) -> None:
    topics.write("in", [("a", "even", 1), ("b", "odd", 2), ("c", "even", 3)])
    streams = topics.streams(signed(), processing_guarantee=guarantee)
    streams.start(until_end=True)
    with pytest.raises(LogError, match=r"write \(declared at .*py:\d+\) .* topic out.* in-0@1: .*'b'.*headers"):
        streams.wait(WAIT_S)
    assert topics.rows("out") == []


def test_an_error_of_a_refused_record_names_the_operator(topics: World) -> None:
    topics.write("in", [("b", "big", 2)])
    streams = topics.streams(copy())
    streams.start(until_end=True)
    with pytest.raises(LogError, match=r"KSTREAM-SINK-\d+ \(declared at .*py:\d+\) .* topic out: .* too large"):
        streams.wait(WAIT_S)

"""Records of several partitions that a task takes together: what comes of them is what comes of them run by run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError, SerdeError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.processor.task.partition_group import PartitionGroup
from tests.processor.test_task import World

LEFT, RIGHT = TopicPartition("left", 3), TopicPartition("right", 3)

rows = st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 40)), max_size=12)


def world(function=lambda value: value):
    """A join of both topics, and a topic for each record that tells where it came from."""
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(source.topic, key=str, value=str) for source in (LEFT, RIGHT))
    placed = left.merge(right).map_values(function)
    placed.to(lambda key, value, record: f"{record.topic}@{record.offset}", key=str, value=str)
    windows = ks.JoinWindows.of(5, grace=3)
    left.outer_join(right, lambda one, other: f"{one}{other}", windows=windows).to("out", key=str, value=str)
    return World(builder)


def group_of(world, left, right, headers=()):
    group = PartitionGroup([LEFT, RIGHT], stamp=world.task.stamp)
    for source, given_rows in ((LEFT, left), (RIGHT, right)):
        encoded = [
            Row(key.encode(), f"{source.topic}{number}".encode(), time, headers)
            for number, (key, time) in enumerate(given_rows)
        ]
        group.add(Batch.of_rows(source, encoded))
    return group


@given(rows, rows, st.sampled_from([(), (("name", b"value"),)]))
def test_the_output_is_that_of_run_by_run(left, right, headers):
    one, other = world(), world()
    for run in iter(group_of(one, left, right, headers).next_run, None):
        one.task.process(run)
    for together in iter(group_of(other, left, right, headers).next_runs, None):
        other.task.process_interleaved(together)
    one.task.send()
    other.task.send()
    assert other.wire.queues.keys() == one.wire.queues.keys()
    for topic in one.wire.queues:
        assert other.written(topic) == one.written(topic)
    assert other.task.metadata() == one.task.metadata()


def test_a_function_that_fails_is_told_with_its_record():
    def fail(value):
        if value == "left1":
            raise ValueError("no")
        return value

    failing = world(fail)
    together = group_of(failing, [("x", 1), ("x", 3)], [("x", 2), ("x", 4)]).next_runs()
    assert len(together.parts) == 2
    with pytest.raises(ProcessingError, match="left-3@1"):
        failing.task.process_interleaved(together)


def test_what_comes_before_a_row_that_does_not_decode_has_its_turn():
    failing = world()
    group = PartitionGroup([LEFT, RIGHT], stamp=failing.task.stamp)
    group.add(Batch.of_rows(LEFT, [Row(b"x", b"l", 1, ()), Row(b"x", b"\xff", 3, ())]))
    group.add(Batch.of_rows(RIGHT, [Row(b"x", b"r", 2, ()), Row(b"x", b"r", 4, ())]))
    with pytest.raises(SerdeError, match="left-3@1"):
        failing.task.process_interleaved(group.next_runs())
    assert failing.written() == [("x", "lr", 2)]

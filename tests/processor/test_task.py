"""A task: order, errors, times, what it drops, what it remembers."""

from __future__ import annotations

import logging

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ProcessingError, SerdeError, UnknownTopicError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.task.task import ResumePoint, Task, TaskResources
from kstreams.serdes import serde_of
from kstreams.state import open_task_state
from kstreams.testing import TestOutputTopic
from kstreams.testing.driver import DriverTopics

IN = TopicPartition("in", 3)


class World:
    """One task of a topology, and the topics it writes."""

    def __init__(self, builder, metadata=None, **config):
        self.wire = DriverTopics(is_input=lambda topic: False, enqueue=lambda batch: None)
        self.clock = ManualClock()
        (part,) = builder.build().sub_topologies
        application = Application.of(Config.of({"application.id": "app", **config}), self.clock)
        resources = TaskResources(open_task_state(part.stores), self.wire)
        self.task = Task(part, IN.partition, application, resources, ResumePoint(metadata or {}))

    def written(self, topic="out", key=str, value=str):
        """(key, value, timestamp) of what was written; it is sent first."""
        self.task.send()
        topic = TestOutputTopic(topic, serde_of(key), serde_of(value), self.wire.queues[topic])
        return [(record.key, record.value, record.timestamp) for record in topic.read_records()]


def batch(*records, base_offset=0, headers=()):
    """Records of `in`, each a (key, value, timestamp)."""
    encode = serde_of(str).serialize
    rows = [Row(k and encode(k), v and encode(v), time, headers) for k, v, time in records]
    return Batch.of_rows(IN, rows, base_offset)


def builder_of(use):
    builder = ks.StreamsBuilder()
    use(builder.stream("in", key=str, value=str))
    return builder


def test_children_are_called_in_order_of_declaration_each_with_its_whole_subtree():
    seen = []

    def topology(stream):
        first = stream.peek(lambda k, v: seen.append(("a", v)))
        first.foreach(lambda k, v: seen.append(("a1", v)))
        first.foreach(lambda k, v: seen.append(("a2", v)))
        stream.foreach(lambda k, v: seen.append(("b", v)))

    World(builder_of(topology)).task.process(batch(("k", "1", 0), ("k", "2", 0)))
    assert seen == [(who, value) for value in "12" for who in ("a", "a1", "a2", "b")]


def test_order_within_a_topic_is_kept_across_sinks():
    def topology(stream):
        stream.map_values(lambda v: v + "1", value=str).to("out")
        stream.map_values(lambda v: v + "2", value=str).to("out")

    world = World(builder_of(topology))
    world.task.process(batch(("k", "a", 0), ("k", "b", 0)))
    assert [value for _, value, _ in world.written()] == ["a1", "a2", "b1", "b2"]


def test_output_is_gathered_until_it_is_sent():
    world = World(builder_of(lambda stream: stream.to("out")))
    world.task.process(batch(("k", "a", 7)))
    assert not world.wire.queues["out"]
    world.task.send()
    assert len(world.wire.queues["out"]) == 1


def test_much_output_is_sent_at_once():
    world = World(builder_of(lambda stream: stream.to("out")))
    world.task.process(batch(*[("k", "a", 7)] * 5_000))
    assert len(world.wire.queues["out"]) == 5_000


def test_a_topic_may_be_chosen_for_each_record():
    world = World(builder_of(lambda stream: stream.to(lambda key, value, record: f"{value}-{record.offset}")))
    world.task.process(batch(("k", "a", 0), ("k", "b", 0), base_offset=5))
    assert world.written("a-5") == [("k", "a", 0)]
    assert world.written("b-6") == [("k", "b", 0)]


def test_a_partitioner_gives_one_partition_several_or_none():
    answers = {"one": 0, "twice": [0, 0], "nowhere": [], "default": None}
    asked = []

    def choose(topic, key, value, partitions):
        asked.append((topic, key, partitions))
        return answers[value]

    world = World(builder_of(lambda stream: stream.to("out", partitioner=choose)))
    world.task.process(batch(*[("k", value, 0) for value in answers]))
    assert [value for _, value, _ in world.written()] == ["one", "twice", "twice", "default"]
    assert asked[0] == ("out", "k", 1)


@pytest.mark.parametrize(
    ("choose", "says"),
    [
        (lambda topic, key, value, count: 3, "ValueError: the partitioner chose 3, but there are partitions 0 to 0"),
        (lambda topic, key, value, count: [-2, 0], "ValueError: the partitioner chose"),
        (lambda topic, key, value, count: "many", "TypeError"),
        (lambda topic, key, value, count: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_a_partitioner_that_goes_wrong_is_named_with_its_line_and_the_record(choose, says):
    world = World(builder_of(lambda stream: stream.to("out", partitioner=choose, name="sink")))
    world.task.process(batch(("k", "a", 0)))
    with pytest.raises(ProcessingError, match=r"sink .*test_task.*with key 'k' and value 'a' for topic out: ") as error:
        world.task.send()
    assert says in str(error.value)


def test_headers_go_along():
    world = World(builder_of(lambda stream: stream.map_values(str.upper, value=str).to("out")))
    world.task.process(batch(("k", "a", 0), headers=(("h", b"1"),)))
    world.task.process(batch(("k", "b", 0)))
    world.task.send()
    assert [row.headers for row in world.wire.queues["out"]] == [(("h", b"1"),), ()]


class TestErrors:
    def test_a_function_that_raises_is_named_with_the_users_line_and_the_record(self):
        builder = ks.StreamsBuilder()
        stream = builder.stream("in", key=str, value=str).map_values(str.upper, value=str)
        stream.map_values(int, value=int).to("out")  # this line
        with pytest.raises(ProcessingError) as raised:
            World(builder).task.process(batch(("k", "1", 0), ("k", "x", 0), base_offset=40))
        error = raised.value
        assert error.operator == "KSTREAM-MAPVALUES-0000000002"
        assert error.declared_at.startswith("tests/processor/test_task.py:")
        assert error.record == "in-3@41"
        assert isinstance(error.cause, ValueError)

    def test_the_innermost_operator_is_blamed(self):
        world = World(builder_of(lambda stream: stream.filter(lambda k, v: True).peek(lambda k, v: 1 / 0)))
        with pytest.raises(ProcessingError, match="KSTREAM-PEEK-0000000002"):
            world.task.process(batch(("k", "a", 0)))

    def test_bytes_that_do_not_decode_are_named_by_record_and_source(self):
        world = World(builder_of(lambda stream: stream.to("out")))
        bad = Batch.of_rows(IN, [Row(b"k", b"fine", 0, ()), Row(b"k", b"\xff", 0, ())], base_offset=7)
        with pytest.raises(SerdeError, match=r"KSTREAM-SOURCE-0000000000.*the value of in-3@8"):
            world.task.process(bad)

    def test_records_before_a_bad_one_have_their_turn_when_a_batch_is_taken_in_runs(self):
        world = World(builder_of(lambda stream: stream.to("out")))
        whole = Batch.of_rows(IN, [Row(b"k", b"fine", 0, ()), Row(b"k", b"\xff", 0, ())])
        world.task.process(whole.slice(0, 1))
        assert world.written() == [("k", "fine", 0)]
        with pytest.raises(SerdeError, match="in-3@1"):
            world.task.process(whole.slice(1, 2))

    def test_a_value_that_does_not_encode_is_named_with_sink_topic_and_record(self):
        world = World(builder_of(lambda stream: stream.map_values(len).to("out", value=str)))
        world.task.process(batch(("k", "abc", 5)))
        with pytest.raises(SerdeError, match=r"KSTREAM-SINK-0000000002.*key 'k', value 3 .*topic out"):
            world.task.send()

    def test_a_topic_that_no_source_reads_is_refused(self):
        world = World(builder_of(lambda stream: stream.to("out")))
        with pytest.raises(UnknownTopicError, match="it reads: in"):
            world.task.process(Batch.of_rows(TopicPartition("other", 0), [Row(None, None, 0, ())]))


class TestTime:
    def stamped(self, extractor, *records):
        builder = ks.StreamsBuilder()
        builder.stream("in", key=str, value=str, timestamp_extractor=extractor).to("out")
        world = World(builder)
        world.task.process(world.task.stamp(batch(*records)))
        return world

    def test_an_extractor_sees_the_decoded_record_and_the_partition_time(self):
        world = self.stamped(
            lambda record, time: time + int(record.value), ("k", "10", 0), ("k", "5", 0), ("k", "-1", 0)
        )
        assert [time for _, _, time in world.written()] == [9, 14, 13]

    def test_negative_timestamps_are_dropped_counted_and_logged(self, caplog):
        with caplog.at_level(logging.WARNING):
            world = self.stamped(lambda record, time: int(record.value), ("k", "-1", 0), ("k", "3", 0))
        assert world.written() == [("k", "3", 3)]
        assert world.task.dropped == {("KSTREAM-SOURCE-0000000000", "negative timestamp"): 1}
        assert "in-3@0" in caplog.text

    def test_an_extractor_that_raises_is_an_error_with_the_record(self):
        with pytest.raises(ProcessingError, match=r"in-3@0: ValueError"):
            self.stamped(lambda record, time: int(record.value), ("k", "soon", 0))

    def test_stream_time_is_the_highest_timestamp(self):
        world = World(builder_of(lambda stream: stream.to("out")))
        world.task.process(batch(("k", "a", 30), ("k", "b", 10)))
        assert world.task.stream_time == 30


def test_what_a_task_remembers_makes_a_restart_invisible():
    def topology():
        builder = ks.StreamsBuilder()
        grouped = builder.stream("in", key=str, value=str).group_by_key()
        grouped.windowed_by(ks.TimeWindows(size=10)).count().to_stream(lambda w, v: w.key, key=str).to("out")
        return builder

    first = World(topology())
    first.task.process(batch(("k", "a", 25)))
    second = World(topology(), metadata=first.task.metadata())
    second.task.process(batch(("k", "late", 3)))
    assert second.task.stream_time == 25
    assert sum(second.task.dropped.values()) == 1


def test_the_record_cache_forwards_the_last_update_at_a_flush():
    builder = ks.StreamsBuilder()
    builder.table("in", key=str, value=str, materialized="rows").to_stream().to("out")
    world = World(builder)
    world.task.process(batch(("a", "1", 0), ("b", "2", 1), ("a", "3", 2)))
    assert world.written() == []
    world.task.flush()
    assert world.written() == [("b", "2", 1), ("a", "3", 2)]


def test_at_the_end_of_input_nothing_stays_behind_in_a_cache_or_buffer_on_the_way():
    builder = ks.StreamsBuilder()
    left = builder.stream("in", key=str, value=str)
    joined = left.left_join(left.filter(lambda k, v: False), lambda a, b: a, windows=ks.JoinWindows.of(10))
    counts = joined.group_by_key(value=str).windowed_by(ks.TimeWindows(size=10)).count()
    final = counts.suppress(ks.Suppressed.until_window_closes())
    final.to_stream(lambda window, count: window.key, key=str).to("out", value=int)
    world = World(builder)
    world.task.process(batch(("a", "1", 0), ("a", "2", 3), ("b", "3", 4)))
    assert world.written(value=int) == []
    world.task.end_of_input()
    assert world.written(value=int) == [("a", 2, 3), ("b", 1, 4)]

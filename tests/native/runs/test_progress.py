"""What an application counts: the records of the user's topics, each once, however they travel inside."""

from __future__ import annotations

import threading

import kstreams as ks
from tests.native.world import WAIT_S, World

TEXTS = {"key": str, "value": str}


def words(through: str | None = None) -> ks.StreamsBuilder:
    """Counts words: each is a record of a repartition topic, and of one of the user's if it is named."""
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", **TEXTS).flat_map_values(str.split, value=str)
    if through is not None:
        words.to(through)
        words = builder.stream(through, **TEXTS)
    words.group_by(lambda key, word: word, key=str).count().to_stream().to("counts")
    return builder


def test_repartition_topics_do_not_count(world: World) -> None:
    world.create("lines", 2)
    world.write("lines", [("a", "the cat", 1), ("b", "the dog and a cat", 2)])
    progress = world.run(words().build(), **{"statestore.cache.max.bytes": 0}).progress()
    assert progress.records_in == 2
    assert progress.records_out == {"counts": 7}


def test_a_topic_of_the_users_that_is_written_and_read_counts_on_both_sides(world: World) -> None:
    world.create("lines")
    world.create("words")
    world.write("lines", [("a", "the cat", 1)])
    first, second = (world.run(words("words").build()).progress() for _ in range(2))
    assert (first.records_in, first.records_out) == (1, {"words": 2})
    assert (second.records_in, second.records_out) == (2, {"counts": 2})


def test_a_record_that_does_not_decode_came_in_and_was_dropped(world: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("numbers", key=str, value=int).to("out")
    world.create("numbers")
    world.write("numbers", [("a", 1, 1), ("b", "no number", 2), ("c", 3, 3)])
    progress = world.run(builder.build(), **{"deserialization.exception.handler": "continue"}).progress()
    assert (progress.records_in, progress.records_out, list(progress.dropped.values())) == (3, {"out": 2}, [1])


class LateSensor(float):
    """A measured number: while it is added up, the stream thread makes one more sensor."""

    adding_up, made = threading.Event(), threading.Event()

    def __radd__(self, other: float) -> LateSensor:
        if threading.current_thread() is threading.main_thread():
            self.adding_up.set()
            assert self.made.wait(WAIT_S)
        return LateSensor(float(self) + other)


class Measures(ks.Processor[str, str, str, str]):
    def init(self, context: ks.ProcessorContext[str, str]) -> None:
        self.context = context

    def process(self, record: ks.Record[str, str]) -> None:
        metrics = self.context.metrics
        if record.value == "late":
            assert LateSensor.adding_up.wait(WAIT_S)
            metrics.add_sensor("late").record(1)
            LateSensor.made.set()
        else:
            metrics.add_sensor("first").record(LateSensor(2))


def test_metrics_are_read_while_stream_threads_make_sensors(world: World) -> None:
    world.create("in")
    world.write("in", [("k", "first", 1), ("k", "late", 2)])
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).process(Measures, key=str, value=str)
    with world.streams(builder.build(), poll_ms=5) as streams:
        streams.start()
        while not streams.sensors():
            streams.wait(0.01)
        read = streams.sensors()
        assert sorted(measured.total for measured in read.values())[-1] == 2
        while len(streams.sensors()) < 2:
            streams.wait(0.01)

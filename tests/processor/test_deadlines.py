"""A task that goes on where another left off keeps the rhythm of its punctuators."""

from __future__ import annotations

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.task.task import ResumePoint, Task, TaskResources
from kstreams.state import open_task_state

IN = TopicPartition("in", 0)


class NoOutput:
    def send(self, topic: str, rows: object, partitions: object) -> None:
        raise AssertionError("nothing is written")

    def partitions(self, topic: str) -> int:
        return 1

    def merges(self, topic: str) -> bool:
        return False

    def has_ranks(self, topic: str) -> bool:
        return False


class Ticks(ks.Processor):
    def __init__(self, kind: ks.PunctuationType, seen: list[int]) -> None:
        self.kind, self.seen = kind, seen

    def init(self, context):
        context.schedule(10, self.kind, self.seen.append)

    def process(self, record):
        pass


def run_in_pieces(kind: ks.PunctuationType, times: list[int], *, keep: bool) -> list[int]:
    """One task per record; the wall clock shows the time of the record."""
    seen: list[int] = []
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).process(lambda: Ticks(kind, seen))
    (sub_topology,) = builder.build().sub_topologies
    metadata, deadlines, clock = {}, {}, ManualClock()
    for time in times:
        application = Application.of(Config.of(application_id="app"), clock)
        resources = TaskResources(open_task_state([]), NoOutput())
        task = Task(sub_topology, 0, application, resources, ResumePoint(metadata, deadlines if keep else {}))
        clock.advance(time - clock.wall_ms())
        task.process(Batch.of_rows(IN, [Row(b"", b"", time, ())]))
        task.punctuate()
        metadata, deadlines = task.metadata(), task.deadlines()
    return seen


def test_stream_time_punctuators_fire_once_per_interval() -> None:
    assert run_in_pieces(ks.PunctuationType.STREAM_TIME, [1, 4, 12, 13, 25], keep=True) == [1, 12, 25]


def test_after_a_restart_they_fire_with_the_first_record() -> None:
    assert run_in_pieces(ks.PunctuationType.STREAM_TIME, [1, 4, 12], keep=False) == [1, 4, 12]


def test_wall_clock_punctuators_fire_once_per_interval() -> None:
    assert run_in_pieces(ks.PunctuationType.WALL_CLOCK_TIME, [1, 4, 12, 13, 25], keep=True) == [12, 25]

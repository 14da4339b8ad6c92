"""A task that makes no progress is reported once, with what it waits for; a summary is written at intervals."""

from __future__ import annotations

import logging

import pytest

from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.metrics.samples import SampleWindows
from kstreams.metrics.sensors import TaskSensors
from kstreams.processor.task.partition_group import PartitionGroup
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StallDetector
from kstreams.runtime.native.time_alignment.task_input import RunLength, SlicePositions, TaskInput

LEFT, RIGHT = TopicPartition("left", 0), TopicPartition("right", 0)


def waiting_task(clock: ManualClock) -> ActiveTask:
    """A task that holds a record of one input and none of the other."""
    plan = TaskPlan(SubTopology(0, (), ()), 0, (LEFT, RIGHT))
    group = PartitionGroup(plan.inputs)
    group.add(Batch.of_rows(LEFT, [Row(b"k", b"v", 1, ())]))
    buffered = TaskInput(
        plan,
        None,  # type: ignore[arg-type]
        group,
        positions=SlicePositions({}),
        length=RunLength(10, 1_000),
        clock=clock,
    )
    return ActiveTask(
        plan,
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        buffered,
        starts={LEFT: 0, RIGHT: 0},
        clock=clock,
        sensors=TaskSensors(SampleWindows(30, 2)),
    )


def test_a_stall_is_reported_once_with_what_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    detector, task = StallDetector("thread-1", 1000, 0, clock), waiting_task(clock)
    detector.check([task])
    clock.advance(999)
    detector.check([task])
    assert detector.stalls == 0
    clock.advance(1)
    detector.check([task])
    detector.check([task])
    assert detector.stalls == 1
    assert "task 0_0 has made no progress for 1000 ms: it holds records of left-0 and waits for right-0" in caplog.text


def test_progress_ends_a_stall(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    detector, task = StallDetector("thread-1", 1000, 0, clock), waiting_task(clock)
    for _ in range(5):
        detector.check([task])
        clock.advance(999)
        task.processed += 1
    assert detector.stalls == 0


def test_a_summary_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    detector, task = StallDetector("thread-1", 300_000, 2000, clock), waiting_task(clock)
    task.processed = 7
    clock.advance(2000)
    detector.check([task])
    assert "thread-1: 1 tasks processed 7 records in 2 s" in caplog.text

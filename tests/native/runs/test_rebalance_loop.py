"""Tasks that are given to a process over and over are noticed and counted."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

import pytest

from kstreams.kernel.clock import ManualClock
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.rebalance_loop import RebalanceLoop
from kstreams.runtime.native.runtime_context import AssignmentCounts
from tests.native.world import WAIT_S, World, tasks_of, word_count

FIRST, SECOND = TaskId(0, 0), TaskId(0, 1)


def until(holds: Callable[[], object]) -> None:
    end = monotonic() + WAIT_S
    while not holds():
        assert monotonic() < end
        sleep(0.02)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if "does not become stable" in line]


def test_a_process_that_comes_and_goes_is_noticed_by_the_others(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.create("lines", 2)
    world.create("counts")
    with world.streams(word_count(), state_dir=world.folder / "one") as one:
        one.start()
        until(lambda: len(tasks_of(one)) == 4)
        assert one.progress().reassigned == 0
        while not said(caplog):
            with world.streams(word_count(), state_dir=world.folder / "two") as two:
                two.start()
                until(lambda two=two: tasks_of(two) and len(tasks_of(one)) < 4)
            until(lambda: len(tasks_of(one)) == 4)
            sleep(0.6)  # it looks twice a second
            assert one.progress().reassigned < 100
        assert one.progress().reassigned >= 3
    assert "session.timeout.ms" in said(caplog)[0]


@pytest.mark.parametrize(("pause_s", "lines"), [(5, 1), (40, 0)])
def test_it_is_a_loop_when_it_happens_within_a_minute(
    caplog: pytest.LogCaptureFixture, pause_s: int, lines: int
) -> None:
    clock, counts = ManualClock(), AssignmentCounts()
    loop = RebalanceLoop(clock)
    for _ in range(6):
        counts.add([FIRST])
        loop.check(counts.counts())
        clock.advance(pause_s * 1_000)
    assert len(said(caplog)) == lines


def test_tasks_that_come_one_by_one_are_no_loop(caplog: pytest.LogCaptureFixture) -> None:
    clock, counts = ManualClock(), AssignmentCounts()
    loop = RebalanceLoop(clock)
    for number in range(50):
        counts.add([TaskId(0, number)])
        loop.check(counts.counts())
        clock.advance(100)
    assert said(caplog) == []
    assert counts.repeated == 0


def test_it_is_said_again_while_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    clock, counts = ManualClock(), AssignmentCounts()
    loop = RebalanceLoop(clock)
    for _ in range(40):
        counts.add([FIRST, SECOND])
        loop.check(counts.counts())
        clock.advance(3_000)
    assert 2 <= len(said(caplog)) <= 4
    assert counts.repeated == 2 * 39

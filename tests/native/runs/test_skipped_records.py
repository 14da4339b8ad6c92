"""Skipped records are told of within half a minute, also while nothing is committed and nothing more comes."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.kernel.clock import ManualClock
from tests.native.stepped import stepped
from tests.native.world import World


def test_the_first_is_told_at_once_and_the_others_in_half_a_minute(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("in")
    world.create("out")
    builder, clock = ks.StreamsBuilder(), ManualClock(1_000)
    builder.stream("in", key=str, value=str).group_by_key().count("counts").to_stream().to("out", key=str, value=int)
    with stepped(world, builder.build(), clock, commit_interval_ms=3_600_000) as app:
        world.write("in", [(None, "v", 1)] * 5)
        app.thread.round()
        assert told(caplog) == ["a record at in-0@0"]
        clock.advance(30_000)
        app.thread.round()
        assert told(caplog)[1:] == ["4 more records"]
        (task,) = app.thread.tasks
        assert list(task.task.dropped.values()) == [5]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.split("dropped ")[1].split(": ")[0] for line in caplog.messages if " dropped " in line]

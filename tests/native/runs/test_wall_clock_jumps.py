"""The time of day jumps while an application runs: what it does at intervals goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest

import kstreams as ks
from kstreams.kernel.clock import ManualClock
from tests.native.stepped import stepped
from tests.native.world import World

HOUR_MS = 3_600_000
JUMPS = [-24 * HOUR_MS, -HOUR_MS, HOUR_MS, 10 * 365 * 24 * HOUR_MS]
NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_commits_come_at_their_interval(world: World, jump_ms: int) -> None:
    world.create("in")
    world.create("out")
    builder, clock = ks.StreamsBuilder(), ManualClock(NOW_MS)
    builder.stream("in", key=str, value=str).to("out")
    with stepped(world, builder.build(), clock, commit_interval_ms=1_000, first_commit_interval_ms=1_000) as app:
        app.work()
        commits = app.thread.committer.commits
        clock.jump(jump_ms)
        world.write("in", [("k", "v", 1)])
        app.thread.round()
        clock.advance(999)
        app.thread.round()
        assert app.thread.committer.commits == commits
        clock.advance(1)
        app.thread.round()
        assert app.thread.committer.commits == commits + 1


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_idle_input_is_idle_for_as_long_as_nothing_comes(world: World, jump_ms: int) -> None:
    world.create("in")
    world.create("out")
    builder, clock = ks.StreamsBuilder(), ManualClock(NOW_MS)
    numbers = builder.stream("in", key=str, value=str, idle=timedelta(seconds=1))
    counts = numbers.group_by_key().windowed_by(ks.TimeWindows(size=100, grace=0)).count()
    counts.suppress(ks.Suppressed.until_window_closes()).to_stream(lambda key, _: key.key, key=str).to("out")
    world.write("in", [("k", "v", 1)])
    with stepped(world, builder.build(), clock) as app:
        app.work()
        clock.jump(jump_ms)
        app.wait(999)
        assert world.rows("out", value=int) == []
        app.wait(1)
        assert [row.value for row in world.rows("out", value=int)] == [1]


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_a_punctuator_of_the_wall_clock_follows_it(world: World, jump_ms: int) -> None:
    world.create("in")
    fired: list[int] = []

    class Ticking(ks.Processor):
        def init(self, context: ks.ProcessorContext) -> None:
            context.schedule(1_000, ks.PunctuationType.WALL_CLOCK_TIME, fired.append)

    builder, clock = ks.StreamsBuilder(), ManualClock(NOW_MS)
    builder.stream("in", key=str, value=str).process(Ticking)
    with stepped(world, builder.build(), clock) as app:
        app.work()
        clock.jump(jump_ms)
        app.thread.round()
        assert fired == ([NOW_MS + jump_ms] if jump_ms > 0 else [])

"""What an application does for its topics while it has no records: old ones go, although nobody appends."""

from __future__ import annotations

import kstreams as ks
from kstreams.kernel.clock import ManualClock
from tests.native.stepped import stepped
from tests.native.world import World

ROUND_MS = 300_000


def test_an_idle_application_applies_retention(world: World) -> None:
    world.create("in", retention_ms="1000")
    world.create("out")
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).to("out")
    world.write("in", [("k", str(i), i) for i in range(5)])
    with stepped(world, builder.build(), ManualClock(1_000_000)) as app:
        app.work()
        assert len(world.rows("in")) == len(world.rows("out")) == 5
        app.wait(ROUND_MS)
        for _ in range(2):  # a partition at a time
            app.thread.round()
        assert world.rows("in") == []
        assert len(world.rows("out")) == 5

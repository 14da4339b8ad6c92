"""Records that wait in a stream-table join with grace: kept over restarts and the loss of the state."""

from __future__ import annotations

import pytest

import kstreams as ks
from tests.native.world import World


def topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    rates = builder.table("rates", key=str, value=str, materialized=ks.Materialized("rates", history_retention=1_000))
    payments = builder.stream("payments", key=str, value=str)
    payments.join(rates, lambda payment, rate: f"{payment}@{rate}", grace=50, name="rate").to("out", value=str)
    return builder.build()


@pytest.mark.parametrize("state", ["state", "another"])
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_they_go_on_waiting_in_the_next_run(world: World, state: str, guarantee: str) -> None:
    for topic in ("rates", "payments", "out"):
        world.create(topic, 2)
    world.write("rates", [("eur", "1", 0)])
    world.write("payments", [("eur", "a", 100), ("eur", "b", 90), ("eur", "c", 120)])
    world.run(topology(), once=True, processing_guarantee=guarantee)
    assert world.rows("out") == []
    world.write("rates", [("eur", "2", 95)])
    world.run(topology(), state_dir=world.folder / state, once=True)
    world.write("payments", [("eur", "d", 151)])
    world.run(topology(), state_dir=world.folder / state, processing_guarantee=guarantee)
    found = [(row.value, row.timestamp) for row in world.rows("out")]
    assert found == [("b@1", 90), ("a@2", 100), ("c@2", 120), ("d@2", 151)]
    assert "app-rate-Buffer-changelog" in world.topics()

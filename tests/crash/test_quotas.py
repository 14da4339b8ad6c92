"""An application over its quotas that is killed and started again gives the answer of one without quotas."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.log.embedded.upkeep.verify import verify
from tests.crash.app import topology
from tests.crash.test_kill import PARTITIONS, kill_at_random, rows
from tests.native.world import World, until

RATES = {"producer_byte_rate": 80_000, "consumer_byte_rate": 80_000}


def filled(folder: Path, lines: int) -> World:
    world = World(folder)
    world.create("lines", PARTITIONS)
    world.write("lines", rows()[:lines])
    return world


def set_quotas(world: World, **rates: int | None) -> None:
    with world.log() as log, log.admin() as admin:
        admin.alter_client_quotas("app", rates)


@pytest.mark.parametrize(("lines", "kills"), [(3_000, 1), pytest.param(20_000, 20, marks=pytest.mark.slow)])
def test_killed_while_it_is_delayed_the_answer_is_that_without_quotas(tmp_path: Path, lines: int, kills: int) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    free = filled(tmp_path / "free", lines)
    free.run(topology)
    world = filled(tmp_path / "delayed", lines)
    set_quotas(world, **RATES)
    print(f"{kill_at_random(tmp_path / 'delayed', kills, random.Random(seed))} kills hit")
    for table in ("counts", "windows"):
        assert world.table(table, value=int) == free.table(table, value=int)
    assert verify(tmp_path / "delayed" / "log") == []
    assert len(list((tmp_path / "delayed" / "log" / "quotas").iterdir())) == 2


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_an_application_that_would_be_delayed_for_minutes_answers_and_stops_at_once(
    tmp_path: Path, guarantee: str
) -> None:
    free = filled(tmp_path / "free", 2_000)
    free.run(topology)
    world = filled(tmp_path / "delayed", 2_000)
    set_quotas(world, producer_byte_rate=1)
    settings = {"processing_guarantee": guarantee, "commit_interval_ms": 20}
    streams = world.streams(topology, max_poll_records=100, **settings)
    streams.start()
    until(lambda: total(streams, "produce-throttle-time-total") > 120_000)  # the first commit may be a small one
    until(lambda: streams.state.value == "RUNNING")
    streams.close()
    assert sum(map(len, world.partitions("counts", value=int))) < sum(map(len, free.partitions("counts", value=int)))
    set_quotas(world, producer_byte_rate=None)
    world.run(topology, **settings)
    for table in ("counts", "windows"):
        assert world.table(table, value=int) == free.table(table, value=int)


def test_reading_that_is_delayed_is_measured_and_ends_by_itself(tmp_path: Path) -> None:
    world = filled(tmp_path, 2_000)
    set_quotas(world, consumer_byte_rate=20_000)
    streams = world.run(topology)
    values = {name.name: value for name, value in streams.metrics().items()}
    assert values["fetch-throttle-time-total"] > 0
    assert values["fetch-throttle-time-max"] >= values["fetch-throttle-time-avg"] > 0
    assert values["produce-throttle-time-total"] == 0


def total(streams: ks.KafkaStreams, name: str) -> float:
    """The sum of a metric over all threads."""
    return sum(float(value) for metric, value in streams.metrics().items() if metric.name == name)

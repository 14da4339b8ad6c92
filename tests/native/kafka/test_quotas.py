"""Applications that the brokers of a real Kafka delay by quotas: the same results, also after kills."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.app import topology
from tests.crash.test_kill import APP, rows
from tests.native.world import World, counted, lines, word_count
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RUN = """
import sys
from kstreams.app import load_app, run
app = load_app(sys.argv[1], {"bootstrap.servers": sys.argv[2], "state.dir": sys.argv[3], "application.id": "app",
    "processing.guarantee": "exactly_once_v2", "num.stream.threads": 2, "max.poll.records": 500,
    "commit.interval.ms": 50})
run(app, until_end=True)
"""
LINES = 6_000


@pytest.fixture
def world(kafka: Any, tmp_path: Path) -> Iterator[World]:
    delete_everything(kafka.bootstrap_servers)
    world = World(tmp_path, **{"bootstrap.servers": kafka.bootstrap_servers})
    yield world
    set_quotas(world, producer_byte_rate=None, consumer_byte_rate=None)


def set_quotas(world: World, **rates: int | None) -> None:
    with world.log() as log, log.admin() as admin:
        admin.alter_client_quotas("app", rates)


def test_an_application_that_brokers_delay_measures_it_and_ends_with_the_same_result(world: World) -> None:
    world.create("lines", 3)
    world.create("counts", 2)
    world.write("lines", [(key, value, time + 1) for key, value, time in lines(4_000)])
    set_quotas(world, producer_byte_rate=5_000, consumer_byte_rate=5_000)
    streams = world.run(word_count())
    assert world.table("counts", value=int) == counted(4_000)
    values = {name.name: value for name, value in streams.metrics().items()}
    assert values["produce-throttle-time-total"] > 0
    assert values["fetch-throttle-time-total"] > 0


def test_killed_while_brokers_delay_it_the_result_is_that_without_quotas(world: World, tmp_path: Path) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    inputs = [(key, value, time + 1) for key, value, time in rows()[:LINES]]
    free = World(tmp_path / "free")
    for each in (free, world):
        each.create("lines", 3)
        each.write("lines", inputs)
    free.run(topology)
    for output in ("counts", "windows"):
        world.create(output)
    set_quotas(world, producer_byte_rate=30_000, consumer_byte_rate=30_000)
    for _ in range(5):
        process = start(world)
        time.sleep(moments.uniform(2, 5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = start(world)
    assert process.wait(300) == 0
    for table in ("counts", "windows"):
        assert world.table(table, value=int) == free.table(table, value=int)


def start(world: World) -> subprocess.Popen[bytes]:
    servers = world.settings["bootstrap.servers"]
    command = [sys.executable, "-c", RUN, str(APP), servers, str(world.folder / "state")]
    return subprocess.Popen(command, cwd=Path(__file__).parents[3])

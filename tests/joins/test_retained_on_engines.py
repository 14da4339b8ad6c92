"""Joins by retention: restarts, lost disks, kills and steps change no result."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kstreams.testing import TopologyTestDriver
from tests.joins.retained_app import topology
from tests.native.world import World
from tests.spark.running import Row
from tests.spark.stepped import Stepped

TYPES = {name: (str, str) for name in ("orders", "payments", "paid", "soon")}
INPUTS = ("orders", "payments")
OUTPUTS = ("paid", "soon")


def rows(count: int, *, keys: int, seed: int) -> list[Row]:
    """Records of both topics, in an order in which some are late."""
    rng = random.Random(seed)
    drawn = []
    for number in range(count):
        time_ms = max(0, 10 * number - rng.choice([0, 0, 0, 30, 700]))
        drawn.append(Row(rng.choice(INPUTS), f"k{rng.randrange(keys)}", f"{number}", time_ms))
    return drawn


def of_driver(records: list[Row]) -> dict[str, Counter[Any]]:
    """What the test driver puts out, without what the end of the input adds."""
    out = {}
    with TopologyTestDriver(topology.build(), {"statestore.cache.max.bytes": 0}) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in INPUTS}
        for row in records:
            topics[row.topic].pipe_input(row.key, row.value, row.timestamp)
        for name in OUTPUTS:
            out[name] = counted(driver.create_output_topic(name, key=str, value=str).read_records())
    return out


def counted(records: Any) -> Counter[Any]:
    return Counter((record.key, record.value, record.timestamp) for record in records)


def run_natively(world: World, records: list[Row]) -> None:
    """Write records and run the application until it has processed them."""
    for topic in INPUTS:
        world.write(topic, [(row.key, row.value, row.timestamp) for row in records if row.topic == topic])
    world.run(topology, once=True)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for topic in INPUTS:
        world.create(topic)
    return world


@pytest.mark.parametrize("lost", ["nothing", "the local state"])
def test_a_restart_continues_with_the_retained_records(world: World, lost: str) -> None:
    records = sorted(rows(300, keys=7, seed=3), key=lambda row: row.timestamp)
    for start in range(0, len(records), 100):
        run_natively(world, records[start : start + 100])
        if lost == "the local state":
            shutil.rmtree(world.folder / "state")
    assert {topic: counted(world.rows(topic)) for topic in OUTPUTS} == of_driver(records)


def test_a_restart_continues_with_the_stream_time(world: World) -> None:
    run_natively(world, [Row("orders", "k", "order", 1_000), Row("payments", "other", "p", 1_100)])
    run_natively(world, [Row("payments", "k", "late", 500), Row("payments", "k", "in time", 600)])
    assert counted(world.rows("soon")) == Counter([("k", "None:late", 500), ("k", "order:in time", 1_000)])
    assert counted(world.rows("paid")) == Counter([("k", "order:late", 1_000), ("k", "order:in time", 1_000)])


def test_steps_of_any_size_give_the_results_of_one_run(tmp_path: Path) -> None:
    records = rows(150, keys=5, seed=5)
    records.sort(key=lambda row: row.timestamp)
    rng = random.Random(7)
    app = Stepped(topology, TYPES, INPUTS, tmp_path)
    out: list[Any] = []
    start = 0
    while start < len(records):
        end = min(len(records), start + rng.choice([1, 3, 20, 40]))
        out += app.step(records[start:end], twice=rng.random() < 0.3, forget=rng.random() < 0.3)
        start = end
    assert Counter(out) == Counter(app.driver_outputs(records, OUTPUTS))


RUN = """
import sys
from kstreams.app import load_app, run
app = load_app(sys.argv[1], {"log.dir": sys.argv[2], "state.dir": sys.argv[3], "application.id": "app",
    "processing.guarantee": "exactly_once_v2", "num.stream.threads": 2, "max.poll.records": 500,
    "commit.interval.ms": 20, "buffered.records.per.partition": 500})
run(app, until_end=True)
"""


@pytest.mark.slow
def test_killed_at_random_moments_each_pair_is_there_exactly_once(tmp_path: Path) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    world = World(tmp_path)
    records = rows(20_000, keys=2_000, seed=13)
    for topic in INPUTS:
        world.create(topic, 3)
        world.write(topic, [(row.key, row.value, row.timestamp) for row in records if row.topic == topic])
    script = [sys.executable, "-c", RUN, str(Path(__file__).with_name("retained_app.py"))]
    command = [*script, str(tmp_path / "log"), str(tmp_path / "state")]
    for attempt in range(11):
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        try:
            assert process.wait(moments.uniform(1.0, 4.0) if attempt < 10 else 120) == 0
            break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    print(f"{attempt} kills")
    assert counted(world.rows("paid")) == of_driver(records)["paid"]

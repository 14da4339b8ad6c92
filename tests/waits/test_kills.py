"""Waiting records under exactly once: killed at random moments, each record comes out once or is parked once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.native.world import World

APP = Path(__file__).with_name("kill_app.py")
RUN = """
import sys
from kstreams.app import load_app, run
run(load_app(sys.argv[1], {"log.dir": sys.argv[2], "state.dir": sys.argv[3], "application.id": "app",
    "processing.guarantee": "exactly_once_v2", "num.stream.threads": 2, "max.poll.records": 50,
    "commit.interval.ms": 20, "poll.ms": 10, "buffered.records.per.partition": 50}))
"""
KEYS = 17


def ended(world: World) -> int:
    return len(world.rows("out")) + len(world.rows("parked"))


def run_killed(world: World, moments: random.Random, kills: int, records: int) -> None:
    """Run until no record waits, killed so often before."""
    log, state = (str(world.settings[key]) for key in ("log.dir", "state.dir"))
    command = [sys.executable, "-c", RUN, str(APP), log, state]
    deadline = time.monotonic() + 240
    for turn in range(kills + 1):
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE)
        assert process.stderr is not None
        try:
            process.wait(moments.uniform(0.8, 2.5))
        except subprocess.TimeoutExpired:
            while turn == kills and ended(world) < records and time.monotonic() < deadline:
                time.sleep(0.2)
        assert process.poll() is None, process.stderr.read().decode()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    ("kills", "records"), [(2, 1_000), pytest.param(30, 20_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
def test_each_record_comes_out_or_is_parked_once_and_keys_keep_their_order(
    tmp_path: Path, kills: int, records: int
) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    world = World(tmp_path)
    for topic in ("in", "out", "parked"):
        world.create(topic, 3)
    world.write("in", ((f"k{number % KEYS}", f"no {number}", number) for number in range(records)))
    run_killed(world, moments, kills, records)
    out = [(row.key, int(row.value.removeprefix("NO "))) for row in world.rows("out")]
    parked = [(row.key, int(row.value.removeprefix("no "))) for row in world.rows("parked")]
    assert Counter(number for _, number in out + parked) == Counter(range(records))
    assert parked, "some records have failed four times"
    for rows in (out, parked):
        for key in {key for key, _ in rows}:
            numbers = [number for row_key, number in rows if row_key == key]
            assert numbers == sorted(numbers)

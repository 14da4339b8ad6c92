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

from kstreams.cli import main
from kstreams.cli.commands.parked import parked_records
from tests.native.world import World

APP = Path(__file__).with_name("kill_app.py")
RUN = """
import sys
from kstreams.app import load_app, run
run(load_app(sys.argv[1], {"log.dir": sys.argv[2], "state.dir": sys.argv[3], "application.id": "app",
    "processing.guarantee": "exactly_once_v2", "num.stream.threads": 2, "max.poll.records": 50,
    "commit.interval.ms": 20, "poll.ms": 10, "buffered.records.per.partition": 50}))
"""
KEYS = 97


def parked_numbers(world: World) -> list[int]:
    """The records that are parked and were not sent back."""
    with world.log() as log:
        return [int(record.row.value.removeprefix(b"no ")) for record in parked_records(log, "parked").values()]


def ended(world: World) -> int:
    return len(world.rows("out")) + len(parked_numbers(world))


def run_killed(world: World, moments: random.Random, kills: int, records: int, *, sends_back: bool) -> None:
    """Run until no record waits, killed so often before; parked records are sent back after every kill but the last."""
    log, state = (str(world.settings[key]) for key in ("log.dir", "state.dir"))
    command = [sys.executable, "-c", RUN, str(APP), log, state]
    deadline = time.monotonic() + 300
    for turn in range(kills + 1):
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE)
        assert process.stderr is not None
        enough = records if turn == kills else min(records, ended(world) + 1)
        while ended(world) < enough and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(moments.uniform(0, 0.4))
        assert process.poll() is None, process.stderr.read().decode()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        print(f"kill {turn} after {ended(world)} records")
        if sends_back and turn < kills:
            assert main(["parked", "retry", "parked", "--all", "--log-dir", log]) == 0


SLOW = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("kills", "records", "sends_back"),
    [(2, 600, True), pytest.param(30, 60_000, False, marks=SLOW), pytest.param(30, 60_000, True, marks=SLOW)],
)
def test_each_record_comes_out_or_is_parked_once_and_keys_keep_their_order(
    tmp_path: Path, kills: int, records: int, sends_back: bool
) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    world = World(tmp_path)
    for topic in ("in", "out", "parked"):
        world.create(topic, 3)
    world.write("in", ((f"k{number % KEYS}", f"no {number}", number) for number in range(records)))
    run_killed(world, moments, kills, records, sends_back=sends_back)
    out = [(row.key, int(row.value.removeprefix("NO "))) for row in world.rows("out")]
    still_parked = parked_numbers(world)
    assert Counter([number for _, number in out] + still_parked) == Counter(range(records))
    ever_parked = {int(row.value.removeprefix("no ")) for row in world.rows("parked")}
    assert ever_parked, "some records have failed four times"
    for key in {key for key, _ in out}:
        numbers = [number for row_key, number in out if row_key == key and number not in ever_parked]
        assert numbers == sorted(numbers)

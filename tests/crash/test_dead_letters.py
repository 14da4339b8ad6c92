"""Dead letters under exactly-once: killed at random moments, each bad record is in the topic once, and no other."""

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

RECORDS = 12_000
APP = Path(__file__).parent / "dead_letters_app.py"
RUN = """
import sys
from kstreams.app import load_app, run
app = load_app(sys.argv[1], {"log.dir": sys.argv[2], "state.dir": sys.argv[3], "application.id": "app",
    "processing.guarantee": "exactly_once_v2", "num.stream.threads": 2, "max.poll.records": 300,
    "commit.interval.ms": 20, "buffered.records.per.partition": 300})
run(app, until_end=True)
"""


def value_of(number: int) -> bytes:
    if number % 10 == 3:
        return b"\xff%d" % number  # does not decode
    return b"no %d" % number if number % 10 == 7 else b"%d" % number  # is no number


def is_bad(number: int) -> bool:
    return number % 10 in (3, 7) or number % 25 == 0


def run_killed(folder: Path, moments: random.Random, kills: int) -> None:
    """Run until done, killed so often before."""
    command = [sys.executable, "-c", RUN, str(APP), str(folder / "log"), str(folder / "state")]
    for turn in range(kills + 1):
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE)
        try:
            process.wait(moments.uniform(0.6, 2.0) if turn < kills else 120)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            continue
        assert process.stderr is not None
        assert process.returncode == 0, process.stderr.read().decode()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, 12])
def test_each_bad_record_has_one_dead_letter_however_often_the_process_is_killed(tmp_path: Path, kills: int) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    world = World(tmp_path)
    for topic in ("numbers", "letters"):
        world.create(topic, 3)
    with world.log() as log, log.producer() as producer:
        for number in range(RECORDS):
            key = None if number % 25 == 0 else b"k%d" % (number % 11)
            producer.send("numbers", key, value_of(number), timestamp=number)
    run_killed(tmp_path, random.Random(seed), kills)
    letters = Counter(row.value for row in world.rows("letters", key=bytes, value=bytes))
    assert letters == Counter(value_of(number) for number in range(RECORDS) if is_bad(number))
    sums: Counter[str] = Counter()
    for number in range(RECORDS):
        if not is_bad(number):
            sums[f"k{number % 11}"] += number
    assert world.table("sums", value=int) == sums

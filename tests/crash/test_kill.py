"""SIGKILL at random moments, restart, again and again: nothing lost, nothing twice (promises P2, P4, P7)."""

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

from kstreams.log.embedded.upkeep.verify import verify
from kstreams.state import open_task_state
from tests.crash.app import topology
from tests.native.world import World

LINES = 20_000
PARTITIONS = 3
APP = Path(__file__).parent / "app.py"
RUN = """
import sys
from kstreams.app import load_app, run
app = load_app(sys.argv[1], {"log.dir": sys.argv[2], "state.dir": sys.argv[3], "application.id": "app",
    "processing.guarantee": "exactly_once_v2", "num.stream.threads": 2, "max.poll.records": 500,
    "commit.interval.ms": 20, "buffered.records.per.partition": 500})
run(app, until_end=True)
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", RUN, str(APP), str(folder / "log"), str(folder / "state")]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE)


def expected() -> tuple[Counter[str], Counter[str]]:
    words: Counter[str] = Counter()
    windows: Counter[str] = Counter()
    for _, line, time_ms in rows():
        for word in line.split():
            words[word] += 1
            windows[f"{word}@{time_ms // 1000 * 1000}"] += 1
    return words, windows


def rows() -> list[tuple[str, str, int]]:
    return [(str(i), f"a b{i % 17} c{i % 1001}", i * 3) for i in range(LINES)]


def kill_at_random(folder: Path, kills: int, moments: random.Random) -> int:
    """Run until done, killed at most so often; returns how many kills hit."""
    hit = 0
    while True:
        process = start(folder)
        try:
            process.wait(moments.uniform(0.5, 2.5) if hit < kills else 120)
        except subprocess.TimeoutExpired:
            if hit >= kills:
                raise
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            hit += 1
            continue
        assert process.stderr is not None
        assert process.returncode == 0, process.stderr.read().decode()
        return hit


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_the_result_is_that_of_an_undisturbed_run(tmp_path: Path, kills: int) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    world = World(tmp_path)
    world.create("lines", PARTITIONS)
    world.write("lines", rows())
    hit = kill_at_random(tmp_path, kills, random.Random(seed))
    print(f"{hit} kills hit")
    words, windows = expected()
    assert world.table("counts", value=int) == words
    assert world.table("windows", value=int) == windows
    assert verify(tmp_path / "log") == []
    assert state_of(tmp_path, "counts") == world.table("app-counts-changelog", key=bytes, value=bytes)
    assert state_of(tmp_path, "windows") == world.table("app-windows-changelog", key=bytes, value=bytes)


def state_of(folder: Path, store: str) -> dict[bytes, bytes]:
    """What the stores of all tasks hold on disk, as their changelogs would say it."""
    sub = next(sub for sub in topology.build().sub_topologies if store in [builder.name for builder in sub.stores])
    held: dict[bytes, bytes] = {}
    for partition in range(PARTITIONS):
        state = open_task_state(sub.stores, folder / "state" / "app" / f"{sub.id}_{partition}")
        dumped = state.dump(store)
        held |= zip(dumped.keys.to_pylist(), dumped.values.to_pylist(), strict=True)
        state.close()
    return held


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_it_cleanly_within_five_seconds(tmp_path: Path, number: signal.Signals) -> None:
    world = World(tmp_path)
    world.create("lines", PARTITIONS)
    world.write("lines", rows())
    command = [
        sys.executable,
        "-c",
        RUN.replace("until_end=True", ""),
        str(APP),
        str(tmp_path / "log"),
        str(tmp_path / "state"),
    ]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE)
    while not (tmp_path / "state" / "app" / "1_0").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(5) == 0
    process = start(tmp_path)
    assert process.wait(120) == 0
    assert world.table("counts", value=int) == expected()[0]

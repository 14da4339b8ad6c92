"""Faults of the disk under an embedded log: a kill at any operation, a power failure, no room."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

from kstreams.log import open_log, verify
from tests.faults.judged_run import ROOT, Home, Judge, opened_home
from tests.faults.request import Counts, Request
from tests.faults.scenarios.scenario import Scenario

LAST_OPERATION = 40
SMALL_SEGMENTS = {"segment.bytes": "4096"}
LIFE_S = 120


def crash_points(request: Request) -> Counts:
    """A producer is killed at an operation of the disk, which a write has done in part; each round is a life."""
    return _lives("crash-points", request)


def power_loss(request: Request) -> Counts:
    """The machine loses its power at an operation of the disk: only what was synced is sure to remain."""
    return _lives("power-loss", request)


def disk_full(request: Request) -> Counts:
    """The disk has no room for some writes: nothing is lost or doubled, and the producer goes on afterwards."""
    return _lives("disk-full", request)


def _lives(kind: str, request: Request) -> Counts:
    chance = random.Random(request.seed)
    with ExitStack() as resources:
        home = resources.enter_context(opened_home(request))
        with open_log(home.address) as log, log.admin() as admin:
            admin.create_topic("sent", 2, SMALL_SEGMENTS)
            admin.create_topic("numbers")
        folder = home.folder / "log"
        counts, committed = Counts(), 0
        for life in range(request.rounds + 1):
            operation = chance.randrange(1, LAST_OPERATION) if life < request.rounds else 0
            numbers = request.records * (life + 1) // (request.rounds + 1)
            arguments = [kind, folder, numbers, operation, request.seed * 1_000 + life + 1]
            command = [sys.executable, "-m", "tests.faults.disk_process", *map(str, arguments)]
            ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIFE_S, check=False)
            lines = [line.partition(" ") for line in ended.stdout.splitlines()]
            for name, _, value in lines:
                if name == "position":
                    counts.losses += max(0, committed - int(value))
                committed = int(value) if name == "committed" else committed
                counts.faults += name == "refused"
            counts.kills += ended.returncode < 0
            counts.faults += ended.returncode < 0
            if ended.returncode > 0:
                counts.wrong.append(f"life {life}: {ended.stderr.strip()[-300:]}")
                break
            if kind == "power-loss" and operation:
                _lose_shared_memory(folder, chance)
        counts.wrong += [str(damage) for damage in verify(folder)]
        _judge(home, request, counts, resources)
    return counts


def _lose_shared_memory(folder: Path, chance: random.Random) -> None:
    """Leave of SQLite's files what a power failure leaves: it never syncs them for a commit."""
    (folder / "catalogue.sqlite-shm").unlink(missing_ok=True)
    wal = folder / "catalogue.sqlite-wal"
    if wal.exists():
        with wal.open("r+b") as file:
            file.truncate(chance.randrange(wal.stat().st_size + 1))


def _judge(home: Home, request: Request, counts: Counts, resources: ExitStack) -> None:
    judge = Judge(home, request, numbers=True)
    resources.callback(judge.close)
    end = monotonic() + 10
    while judge.ask("progress")["behind"] and monotonic() < end:
        sleep(0.2)
    verdict = judge.ask("verdict")
    counts.records = verdict["records"]
    counts.duplicates += verdict["duplicates"]
    counts.losses += verdict["losses"]
    counts.order_violations += verdict["order_violations"]
    counts.wrong += verdict["wrong"]


DISK_SCENARIOS = [
    Scenario(run, homes=("embedded",), records=2_600, rounds=12) for run in (crash_points, power_loss, disk_full)
]

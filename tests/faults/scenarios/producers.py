"""Faults of a producer: it is killed in the middle of a transaction, and another process takes its place."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import ExitStack
from time import monotonic, sleep

from tests.faults.judged_run import LONGEST_S, ROOT, Judge, opened_home
from tests.faults.request import Counts, Request
from tests.faults.scenarios.scenario import Scenario


def kill_producer(request: Request) -> Counts:
    """A transactional producer is killed at random moments; a new one goes on from the committed position."""
    chance = random.Random(request.seed)
    with ExitStack() as resources:
        home = resources.enter_context(opened_home(request))
        home.create({"sent": 3, "numbers": 1})
        judge = Judge(home, request, numbers=True)
        resources.callback(judge.close)
        command = [sys.executable, "-m", "tests.faults.numbers_process", home.address, str(request.records)]
        kills = 0
        while True:
            before = judge.ask("progress")["read"]
            process = subprocess.Popen(command, cwd=ROOT)
            resources.callback(process.kill)
            end = monotonic() + LONGEST_S
            while kills < request.rounds and judge.ask("progress")["read"] == before and process.poll() is None:
                sleep(0.1)
            try:
                status = process.wait(chance.uniform(0.0, 0.5) if kills < request.rounds else end - monotonic())
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
        while judge.ask("progress")["behind"] and monotonic() < end:
            sleep(0.2)
        verdict = judge.ask("verdict")
    wrong = [*verdict.pop("wrong"), *([f"the producer ended with {status}"] if status else [])]
    if kills < request.rounds:
        wrong.append(f"all was written after {kills} kills: take more records")
    return Counts(kills=kills, faults=kills, wrong=wrong, **verdict)


PRODUCER_SCENARIOS = [Scenario(kill_producer, records=20_000)]

"""Faults of the processes of an application: killed, stopped, added and removed, with wall clocks that jump."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import monotonic, sleep

from tests.faults.judged_run import SESSION_S, JudgedRun, judged_run
from tests.faults.request import Counts, Request
from tests.faults.scenarios.scenario import Scenario

HOUR_MS = 3_600_000
JUMPS_MS = (-HOUR_MS, HOUR_MS, -24 * HOUR_MS, 24 * HOUR_MS, 10 * 365 * 24 * HOUR_MS)
MOST_PROCESSES = 5
POISON_EVERY = 50
HUGE_BYTES = 900_000
MEMORY_BYTES = 64 << 20
MOST_FILES = 256


def kill_app(request: Request) -> Counts:
    """One of three processes is killed at a random moment, and started again."""
    with judged_run(request) as run:
        for _ in run.rounds():
            victim = run.chance.choice(run.fleet.numbers)
            run.fleet.kill(victim)
            run.fleet.start(victim)
        return run.counts()


def kill_reprocessing(request: Request) -> Counts:
    """All input is there before the processes are, windows have no more grace than needed, and processes are killed."""
    with judged_run(request, processes=0, app="history") as run:
        run.write(1.0)
        for number in range(3):
            run.fleet.start(number)
        for _ in range(request.rounds):
            sleep(run.chance.uniform(1.0, 4.0))
            victim = run.chance.choice(run.fleet.numbers)
            run.fleet.kill(victim)
            run.fleet.start(victim)
            run.faults += 1
        return run.counts()


def zombie(request: Request) -> Counts:
    """One of three processes stands still for twice its session time-out (SIGSTOP), and wakes (SIGCONT)."""
    with judged_run(request, settings={"num.standby.replicas": 1}) as run:
        for number in run.rounds():
            victim = run.chance.choice(run.fleet.numbers)
            run.fleet.suspend(victim)
            sleep(1.25 * SESSION_S)
            run.write((number + 1.25) / (request.rounds + 1))
            sleep(1.0 * SESSION_S)
            run.fleet.resume(victim)
        return run.counts()


def rebalance_storm(request: Request) -> Counts:
    """Every second a process comes, leaves or is killed, while input comes."""
    with judged_run(request) as run:
        next_number = 3
        for _ in run.rounds():
            numbers = run.fleet.numbers
            if len(numbers) < 2 or (len(numbers) < MOST_PROCESSES and run.chance.random() < 0.5):
                run.fleet.start(next_number)
                next_number += 1
            elif run.chance.random() < 0.5:
                run.fleet.end(run.chance.choice(numbers))
            else:
                run.fleet.kill(run.chance.choice(numbers))
            sleep(0.5)
        return run.counts()


def restore_interrupted(request: Request) -> Counts:
    """All processes are killed and lose their state; the new ones are killed while they restore it."""
    with judged_run(request, processes=2) as run:
        for _ in run.rounds():
            for number in run.fleet.numbers:
                run.fleet.kill(number)
                shutil.rmtree(run.fleet.state_folder(number), ignore_errors=True)
            run.fleet.start(0)
            _wait_for(run.fleet.state_folder(0))
            sleep(run.chance.uniform(0.0, 1.0))
            run.fleet.kill(0)
            for number in range(2):
                run.fleet.start(number)
        return run.counts()


def standby_takeover(request: Request) -> Counts:
    """A process is killed for good with its state; its standbys take over, and a new process comes."""
    with judged_run(request, settings={"num.standby.replicas": 1}) as run:
        for number in run.rounds():
            victim = run.chance.choice(run.fleet.numbers)
            run.fleet.kill(victim)
            shutil.rmtree(run.fleet.state_folder(victim), ignore_errors=True)
            run.fleet.start(3 + number)
        return run.counts()


def poison(request: Request) -> Counts:
    """Some records cannot be decoded, and go to the dead letters once, while processes are killed."""
    settings = {
        "errors.dead.letter.queue.topic.name": "dead",
        "deserialization.exception.handler": "continue",
    }
    with judged_run(request, settings=settings, features={"poison_every": POISON_EVERY}) as run:
        for _ in run.rounds():
            victim = run.chance.choice(run.fleet.numbers)
            run.fleet.kill(victim)
            run.fleet.start(victim)
        return run.counts()


def clock_jumps(request: Request) -> Counts:
    """The wall clock of a process jumps by an hour, a day or ten years, before its start or while it runs."""
    with judged_run(request, processes=0) as run:
        for number in range(3):
            run.fleet.shift_file(number).write_text("0")
            run.fleet.start(number)
        for _ in run.rounds():
            victim = run.chance.choice(run.fleet.numbers)
            run.fleet.shift_file(victim).write_text(str(run.chance.choice(JUMPS_MS)))
            if run.chance.random() < 0.5:
                run.fleet.kill(victim)
                run.fleet.start(victim)
        return run.counts()


def huge_records(request: Request) -> Counts:
    """Every hundredth order is a record of 900 kB, while processes are killed."""
    with judged_run(request, features={"padding": HUGE_BYTES}) as run:
        for _ in run.rounds():
            victim = run.chance.choice(run.fleet.numbers)
            run.fleet.kill(victim)
            run.fleet.start(victim)
        return run.counts()


def memory(request: Request) -> Counts:
    """Ten times the load arrives at once; a process may grow by at most 1.5 times `memory.max.bytes`."""
    with judged_run(request, processes=1, settings={"memory.max.bytes": MEMORY_BYTES}) as run:
        run.write(0.05)
        run.catch_up()
        start, highest = _anonymous_bytes(run), 0
        run.write(1.0)
        run.faults += 1
        while run.judge.ask("progress")["behind"]:
            highest = max(highest, _anonymous_bytes(run))
            sleep(0.2)
        growth = max(highest, _anonymous_bytes(run)) - start
        if growth > 1.5 * MEMORY_BYTES:
            run.wrong.append(f"memory grew by {growth >> 20} MiB, the budget is {MEMORY_BYTES >> 20} MiB")
        return run.counts()


def descriptors(request: Request) -> Counts:
    """Processes may open few files, more tasks come to them when one is killed, and they never run out."""
    with judged_run(request, most_files=MOST_FILES) as run:
        for _ in run.rounds():
            victim = run.chance.choice(run.fleet.numbers)
            run.fleet.kill(victim)
            sleep(1.0)
            run.fleet.start(victim)
        return run.counts()


def _anonymous_bytes(run: JudgedRun) -> int:
    status = Path(f"/proc/{run.fleet.pid(0)}/status").read_text()
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


def _wait_for(folder: Path) -> None:
    end = monotonic() + 60
    while not folder.exists() and monotonic() < end:
        sleep(0.05)


PROCESS_SCENARIOS = [
    Scenario(kill_app),
    Scenario(kill_reprocessing),
    Scenario(zombie, rounds=1),
    Scenario(rebalance_storm, rounds=6),
    Scenario(restore_interrupted),
    Scenario(standby_takeover),
    Scenario(poison),
    Scenario(clock_jumps),
    Scenario(huge_records, records=3_000),
    Scenario(memory, records=60_000, rounds=1),
    Scenario(descriptors),
]

"""Kills and stops of processes that share an application: `python -m tests.faults.takeover --kills 30 --stops 5`.

Three processes run `takeover_app.py`, each task with a standby. While input comes, one of them is killed at a random
moment and started again, or stands still for longer than its session while the others go on with its tasks, and wakes.
Then the results are compared with those of a run that nobody disturbs. Exactly once, each count is there once. At least
once (`--guarantee at_least_once`), records may be counted twice, and no count is lower than it was. The exit status is
1 when something is lost or goes back, and when something is doubled exactly once. With `--history` all input is there
before the processes are; what they read out of order of time is late then.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from tests.native.world import World
from tests.support.kafka_cluster import KafkaCluster

APP = Path(__file__).with_name("takeover_app.py")
SETTINGS: dict[str, Any] = {
    "application.id": "shared",
    "num.standby.replicas": 1,
    "statestore.cache.max.bytes": 0,
    "consumer.session.timeout.ms": 2_000,
    "consumer.heartbeat.interval.ms": 500,
}
EXACTLY_ONCE = "exactly_once_v2"
COMMIT_MS = {EXACTLY_ONCE: 100, "at_least_once": 500}
PROCESSES = 3
CHANGELOG = "shared-counts-changelog"
QUIET_LOOKS = 3
LONGEST_S = 300.0

Rows = list[tuple[str, str, str, int]]


class Given(NamedTuple):
    """The arguments of a run."""

    home: str = "embedded"
    rows: int = 100_000
    kills: int = 30
    stops: int = 0
    seed: int = 1
    history: bool = False
    guarantee: str = EXACTLY_ONCE

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the application."""
        return SETTINGS | {
            "processing.guarantee": self.guarantee,
            "commit.interval.ms": COMMIT_MS[self.guarantee],
        }


class Results(NamedTuple):
    """What an application has written.

    Parameters
    ----------
    counts : Counter
        Every update of a count: how often it was written.
    last_counts, joined : dict
        The last value of every key.
    """

    counts: Counter[tuple[str, int]]
    last_counts: dict[str, int]
    joined: dict[str, str]


class Faults(NamedTuple):
    """How results differ from those of an undisturbed run.

    Parameters
    ----------
    lost : int
        Counts of windows that end too low, or are missing; exactly once also updates that are missing.
    doubled : int
        Records that are counted twice, or updates that are written twice.
    back : int
        Updates of the changelog that are lower than an earlier one of the same key.
    other : int
        Joined rows whose last value is another one.
    """

    lost: int
    doubled: int
    back: int
    other: int


def input_rows(given: Given) -> Rows:
    """Topic, key, value and time: visits, orders that change their customer, customers that change their name."""
    chance = random.Random(given.seed)
    rows: Rows = []
    for i in range(given.rows):
        time, kind = 1 + i * 20 + chance.randrange(5_000), chance.randrange(10)
        if kind < 6:
            rows.append(("visits", f"v{chance.randrange(5_000)}", f"page{int(chance.paretovariate(0.8)) % 200}", time))
        elif kind < 9:
            rows.append(("orders", f"o{chance.randrange(2_000)}", f"c{chance.randrange(100)} {i}", time))
        else:
            rows.append(("customers", f"c{chance.randrange(100)}", f"name{i}", time))
    return rows


def run(given: Given) -> Faults:
    """Kill, stop and compare."""
    with home(given) as world:
        rows = input_rows(given)
        expected = undisturbed(given, rows, world.folder / "undisturbed")
        create_topics(world)
        if given.history:
            write(world, rows)
        with processes(world, application(given)) as running:
            disturb(given, world, [] if given.history else rows, running)
            results = final_results(given, world, expected)
        faults = compared(given, expected, results, steps_back(world))
    report(given, expected, faults)
    return faults


def create_topics(world: World) -> None:
    for topic in ("visits", "orders", "customers"):
        world.create(topic, 4)
    for topic in ("counts", "named"):
        world.create(topic, 2)


@contextmanager
def home(given: Given) -> Iterator[World]:
    """Topics on the home that is asked for."""
    with ExitStack() as resources:
        folder = Path(tempfile.mkdtemp(prefix="kstreams-takeover-"))
        resources.callback(shutil.rmtree, folder, ignore_errors=True)
        settings = given.settings
        if given.home == "kafka":
            cluster = resources.enter_context(KafkaCluster(settings={"group.min.session.timeout.ms": 1_000}))
            settings["bootstrap.servers"] = cluster.bootstrap_servers
        yield World(folder, **settings)


def application(given: Given) -> str:
    """The one that the processes run."""
    return f"{APP}:history" if given.history else f"{APP}"


def undisturbed(given: Given, rows: Rows, folder: Path) -> Results:
    """The results of one run over all input, on an embedded log."""
    from tests.faults.takeover_app import history, topology

    world = World(folder, **{**given.settings, "num.standby.replicas": 0})
    create_topics(world)
    write(world, rows)
    with world.streams(history if given.history else topology) as streams:
        streams.start(once=True)
        assert streams.wait(LONGEST_S)
    return results_of(world)


def write(world: World, rows: Rows) -> None:
    with world.log() as log, log.producer() as producer:
        for topic, key, value, time in rows:
            producer.send(topic, key.encode(), value.encode(), timestamp=time)


def results_of(world: World) -> Results:
    updates = world.rows("counts", value=int)
    last = {row.key: row.value for row in updates}
    return Results(Counter((row.key, row.value) for row in updates), last, world.table("named"))


def steps_back(world: World) -> int:
    """How often a count is lower in the changelog than it was before."""
    highest, back = dict[bytes, int](), 0
    for row in world.rows(CHANGELOG, bytes, bytes):
        count = int.from_bytes(row.value[-8:], "big")
        back += count < highest.get(row.key, 0)
        highest[row.key] = max(count, highest.get(row.key, 0))
    return back


@contextmanager
def processes(world: World, app: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    running = [start(world, app) for _ in range(PROCESSES)]
    try:
        yield running
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(60)
    finally:
        for process in running:
            process.kill()
            process.wait()


def start(world: World, app: str) -> subprocess.Popen[bytes]:
    """One more process of the application."""
    given = [part for key, value in world.settings.items() for part in ("-c", f"{key}={value}")]
    command = [sys.executable, "-m", "kstreams", "run", app, *given]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stderr)


def disturb(given: Given, world: World, rows: Rows, running: list[subprocess.Popen[bytes]]) -> None:
    """Write the input in parts; during each a process is killed or stands still."""
    chance = random.Random(given.seed)
    actions = [kill] * given.kills + [stop] * given.stops
    chance.shuffle(actions)
    size = -(-len(rows) // (len(actions) + 1))
    write(world, rows[:size])
    for number, act in enumerate(actions, 1):
        sleep(chance.uniform(0.2, 3.0))
        victim = chance.randrange(PROCESSES)
        assert running[victim].poll() is None, "it has ended by itself"
        part = rows[number * size : (number + 1) * size]
        write(world, part[: size // 2])  # so that the victim has something at hand
        sleep(chance.uniform(0.0, 0.3))
        go_on = partial(write, world, part[size // 2 :])
        running[victim] = act(running[victim], go_on) or start(world, application(given))


def kill(process: subprocess.Popen[bytes], meanwhile: Callable[[], None]) -> None:
    """Kill a process: another one takes its place."""
    process.kill()
    process.wait()
    meanwhile()


def stop(process: subprocess.Popen[bytes], meanwhile: Callable[[], None]) -> subprocess.Popen[bytes]:
    """Let a process stand still for longer than its session time-out, while the others go on."""
    process.send_signal(signal.SIGSTOP)
    try:
        sleep(1.25 * SETTINGS["consumer.session.timeout.ms"] / 1000)
        meanwhile()
        sleep(1.0 * SETTINGS["consumer.session.timeout.ms"] / 1000)
    finally:
        process.send_signal(signal.SIGCONT)
    return process


def final_results(given: Given, world: World, expected: Results) -> Results:
    """The results when they are as expected, or stay as they are."""
    end, quiet_looks, before = monotonic() + LONGEST_S, 0, None
    while (results := results_of(world)) != expected and quiet_looks < QUIET_LOOKS and monotonic() < end:
        is_quiet = results == before and results.counts.total() >= expected.counts.total()
        quiet_looks = quiet_looks + 1 if is_quiet else 0
        before = results
        sleep(2)
    return results


def compared(given: Given, expected: Results, results: Results, back: int) -> Faults:
    """How results differ from the expected ones."""
    other = sum(results.joined.get(key) != value for key, value in expected.joined.items())
    if given.guarantee == EXACTLY_ONCE:
        lost, doubled = expected.counts - results.counts, results.counts - expected.counts
        return Faults(lost.total(), doubled.total(), back, other)
    more = {key: results.last_counts.get(key, 0) - count for key, count in expected.last_counts.items()}
    lost_windows = sum(each < 0 for each in more.values())
    return Faults(lost_windows, sum(each for each in more.values() if each > 0), back, other)


def report(given: Given, expected: Results, faults: Faults) -> None:
    disturbances = f"{given.kills} kills and {given.stops} stops of {PROCESSES} processes"
    print(f"{given.home}, {given.guarantee}: {given.rows:,} records, {disturbances}, seed {given.seed}")
    print(f"counts of {len(expected.last_counts):,} windows: {faults.lost} lost, {faults.doubled} doubled")
    print(f"changelog: {faults.back} updates go back; joined: {len(expected.joined):,} rows, {faults.other} other")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--rows", type=int, default=Given().rows)
    parser.add_argument("--kills", type=int, default=Given().kills)
    parser.add_argument("--stops", type=int, default=Given().stops)
    parser.add_argument("--seed", type=int, default=Given().seed)
    parser.add_argument("--history", action="store_true")
    parser.add_argument("--guarantee", choices=sorted(COMMIT_MS), default=Given().guarantee)
    given = Given(**vars(parser.parse_args()))
    faults = run(given)
    is_once = given.guarantee == EXACTLY_ONCE
    return int(any(faults if is_once else faults._replace(doubled=0)))


if __name__ == "__main__":
    sys.exit(main())

"""Kills of processes that share an application: `python -m tests.faults.takeover --home kafka --kills 30 --stops 5`.

Three processes run `takeover_app.py`, exactly once, each task with a standby. While input comes, one of them is killed
at a random moment and started again, or stands still until the others have missed it. Then the results are those of a
run that nobody disturbs: of the counts each exactly once, of the join the last of every key. The exit status is 1 when
one is missing, wrong or doubled. With `--history` all input is there before the processes are; what they read out of
order of time is late then.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from tests.native.world import World
from tests.support.kafka_cluster import KafkaCluster

APP = Path(__file__).with_name("takeover_app.py")
SETTINGS: dict[str, Any] = {
    "application.id": "shared",
    "processing.guarantee": "exactly_once_v2",
    "num.standby.replicas": 1,
    "statestore.cache.max.bytes": 0,
    "consumer.session.timeout.ms": 2_000,
    "consumer.heartbeat.interval.ms": 500,
}
PROCESSES = 3
LONGEST_S = 300.0

Rows = list[tuple[str, str, str, int]]


class Given(NamedTuple):
    """What is asked for."""

    home: str = "embedded"
    rows: int = 100_000
    kills: int = 30
    stops: int = 0
    seed: int = 1
    history: bool = False


class Results(NamedTuple):
    """Every count, and the last joined value of every order."""

    counts: Counter[tuple[str, int]]
    named: dict[str, str]


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


def run(given: Given) -> bool:
    """Kill and compare; whether all is right."""
    with home(given) as world:
        rows = input_rows(given)
        wanted = undisturbed(given, rows, world.folder / "undisturbed")
        for topic in ("visits", "orders", "customers"):
            world.create(topic, 4)
        for topic in ("counts", "named"):
            world.create(topic, 2)
        if given.history:
            write(world, rows)
        with processes(world, application(given)) as running:
            disturb(given, world, [] if given.history else rows, running)
            found = final_results(world, wanted)
    report(given, wanted, found)
    return found == wanted


@contextmanager
def home(given: Given) -> Iterator[World]:
    """Topics on the home that is asked for."""
    with ExitStack() as resources:
        folder = Path(tempfile.mkdtemp(prefix="kstreams-takeover-"))
        resources.callback(shutil.rmtree, folder, ignore_errors=True)
        settings = dict(SETTINGS)
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

    world = World(folder, **{**SETTINGS, "num.standby.replicas": 0})
    for topic in ("visits", "orders", "customers"):
        world.create(topic, 4)
    for topic in ("counts", "named"):
        world.create(topic, 2)
    write(world, rows)
    world.run(history if given.history else topology, once=True)
    return results(world)


def write(world: World, rows: Rows) -> None:
    with world.log() as log, log.producer() as producer:
        for topic, key, value, time in rows:
            producer.send(topic, key.encode(), value.encode(), timestamp=time)


def results(world: World) -> Results:
    counts = Counter((row.key, row.value) for row in world.rows("counts", value=int))
    return Results(counts, world.table("named"))


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
    """Write the input in parts; after each a process is killed or stands still."""
    chance = random.Random(given.seed)
    actions = [kill] * given.kills + [stop] * given.stops
    chance.shuffle(actions)
    part = -(-len(rows) // (len(actions) + 1))
    write(world, rows[:part])
    for number, act in enumerate(actions, 1):
        sleep(chance.uniform(0.2, 3.0))
        victim = chance.randrange(PROCESSES)
        assert running[victim].poll() is None, "it has ended by itself"
        running[victim] = act(running[victim]) or start(world, application(given))
        write(world, rows[number * part : (number + 1) * part])


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process: another one takes its place."""
    process.kill()
    process.wait()


def stop(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """Let a process stand still for longer than its session time-out."""
    process.send_signal(signal.SIGSTOP)
    sleep(2 * SETTINGS["consumer.session.timeout.ms"] / 1000)
    process.send_signal(signal.SIGCONT)
    return process


def final_results(world: World, wanted: Results) -> Results:
    """The results when they are as wanted, or stay as they are."""
    end, before = monotonic() + LONGEST_S, None
    while (found := results(world)) != wanted and monotonic() < end:
        if found.counts.total() >= wanted.counts.total() and found == before:
            break
        before = found
        sleep(2)
    return found


def report(given: Given, wanted: Results, found: Results) -> None:
    missing, more = wanted.counts - found.counts, found.counts - wanted.counts
    other = sum(found.named.get(key) != value for key, value in wanted.named.items())
    faults = f"{given.kills} kills and {given.stops} stops of {PROCESSES} processes"
    print(f"{given.home}: {given.rows:,} records, {faults}, seed {given.seed}")
    print(f"counts: {wanted.counts.total():,} wanted, {missing.total()} missing, {more.total()} wrong or doubled")
    print(f"joined: {len(wanted.named):,} wanted, {other} other")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--rows", type=int, default=Given().rows)
    parser.add_argument("--kills", type=int, default=Given().kills)
    parser.add_argument("--stops", type=int, default=Given().stops)
    parser.add_argument("--seed", type=int, default=Given().seed)
    parser.add_argument("--history", action="store_true")
    return 0 if run(Given(**vars(parser.parse_args()))) else 1


if __name__ == "__main__":
    sys.exit(main())

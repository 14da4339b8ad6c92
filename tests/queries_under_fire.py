"""Asks two processes that share an application, of which one is killed again and again: is any answer wrong?

    python -m tests.queries_under_fire --rounds 5 --home kafka

Either process is asked for all keys, all the time. An answer comes with the offsets that it stands for: it is wrong
when the input up to there gives another one, or when it stands for less than an answer that was there before it was
asked for.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from kstreams.config import Config
from kstreams.runtime.native.stores.metadata import HostInfo
from kstreams.server.instances import Instance, Instances
from tests.native.world import World, until
from tests.server.served import Client
from tests.support.kafka_cluster import KafkaCluster

APP = """
import kstreams as ks

topology = ks.StreamsBuilder()
topology.stream("in", key=str, value=str).group_by_key().count(ks.Materialized("counts", queryable=True))
"""
PARTITIONS, PROCESSES, ASKERS = 4, 2, 4
KEYS = [f"k{number}" for number in range(24)]
BATCHES, BATCH, PER_BATCH = 40, 50, 10


class Given(NamedTuple):
    """An answer: the counts that it gave, the keys that it had to give, and the offsets that it stands for."""

    counts: dict[str, int]
    asked: tuple[str, ...]
    position: dict[str, int]
    before: dict[str, int]
    instance: str
    has_help: bool = False


class Tally:
    """All answers, and the offsets that they stand for, which may only grow."""

    def __init__(self) -> None:
        self.answers: list[Given] = []
        self.refused: list[str] = []
        self.retries = 0
        self._seen: dict[str, int] = {}
        self._lock = threading.Lock()

    def seen(self) -> dict[str, int]:
        """What answers stand for that are there by now."""
        with self._lock:
            return dict(self._seen)

    def add(self, answer: Given) -> None:
        with self._lock:
            self.answers.append(answer)
            for source, offset in answer.position.items():
                self._seen[source] = max(offset, self._seen.get(source, -1))

    def retry(self) -> None:
        with self._lock:
            self.retries += 1

    def wrong(self, world: World) -> list[str]:
        """The answers that are wrong, in words."""
        partitions = [[row.key for row in rows] for rows in world.partitions("in")]
        home = {key: number for number, keys in enumerate(partitions) for key in keys}
        upto = [_running_counts(keys) for keys in partitions]
        found = list(self.refused)
        for answer in self.answers:
            found += [
                f"{answer.instance} went back from {source}@{before} to {answer.position[source]}"
                for source, before in answer.before.items()
                if answer.position.get(source, before) < before
            ]
            for key in answer.asked:
                at = answer.position.get(f"in-{home[key]}", -1)
                right, count = upto[home[key]].get(key, {}), answer.counts.get(key, 0)
                wanted = max((n for n, offset in right.items() if offset <= at), default=0)
                if count != wanted:
                    found.append(f"{answer.instance} gave {key}={count} at in-{home[key]}@{at}, where it is {wanted}")
        return found


def _running_counts(keys: list[str]) -> dict[str, dict[int, int]]:
    """Of each key: the offset at which each count is reached."""
    reached: dict[str, dict[int, int]] = defaultdict(dict)
    for offset, key in enumerate(keys):
        reached[key][len(reached[key]) + 1] = offset
    return reached


class Fire:
    """The processes, and those who ask them."""

    def __init__(self, folder: Path, seed: int, home: Mapping[str, Any]) -> None:
        self.random, self.tally, self.stopping = random.Random(seed), Tally(), threading.Event()
        settings = {"commit.interval.ms": 50, "processing.guarantee": "exactly_once_v2"}
        self.world = World(folder, **settings, **home)
        self.world.create("in", PARTITIONS)
        (folder / "app.py").write_text(APP)
        self.instances = Instances(Config.of(self.world.settings))
        self.processes = [self._start() for _ in range(PROCESSES)]
        until(self._has_all)

    def _start(self) -> subprocess.Popen[bytes]:
        settings = [part for name, value in self.world.settings.items() for part in ("-c", f"{name}={value}")]
        command = [sys.executable, "-m", "kstreams", "run", "app.py", "--serve", *settings]
        return subprocess.Popen(command, cwd=self.world.folder, stderr=subprocess.DEVNULL)

    def clients(self) -> list[Client]:
        """Who asks each process that answers now."""
        found: list[Instance] = self.instances.running()
        hosts = [host for each in found if (host := HostInfo.of(each.address)) is not None]
        return [Client(host, self.instances.token()) for host in hosts]

    def ask(self, chance: random.Random) -> None:
        """Look up keys and read all, at any process."""
        while not self.stopping.is_set():
            clients = self.clients()
            if not clients:
                self.stopping.wait(0.05)
                continue
            self._ask_once(chance.choice(clients), None if chance.random() < 0.2 else chance.choice(KEYS))

    def _ask_once(self, client: Client, key: str | None) -> dict[str, int] | None:
        """The counts that a process gives for a key or for all; None when it is to be asked again."""
        before = self.tally.seen()
        place = "rows?limit=1000" if key is None else f"keys/{key}"
        try:
            answer = client.ask(f"/v1/stores/counts/{place}")
        except (OSError, HTTPException):
            return self.tally.retry()
        if answer.status in (503, 504):
            return self.tally.retry()
        if answer.status != 200:
            return self.tally.refused.append(f"{client.host} refused {place}: {answer.status} {answer.body!r}")
        page: dict[str, Any] = answer.json()
        helpers = set(page["instances"].values()) - {str(client.host)}
        counts = {row["key"]: row["value"] for row in page["rows"]}
        asked = tuple(KEYS) if key is None else (key,)
        self.tally.add(Given(counts, asked, page["position"], before, str(client.host), bool(helpers)))
        return counts

    def round(self) -> None:
        """Write, kill one process in between, start another, and wait until both have all."""
        killed_at = self.random.randrange(5, BATCHES - 5)
        for number in range(BATCHES):
            self.world.write("in", [(self.random.choice(KEYS), "", number + 1) for _ in range(BATCH)])
            if number == killed_at:
                victim = self.random.randrange(PROCESSES)
                self.processes[victim].kill()
                self.processes[victim].wait()
                self.processes[victim] = self._start()
            answers = len(self.tally.answers)
            until(lambda answers=answers: len(self.tally.answers) > answers + PER_BATCH or self.stopping.is_set())
        until(self._has_all)

    def _has_all(self) -> bool:
        total = sum(map(len, self.world.partitions("in")))
        clients = self.clients()
        counted = [self._ask_once(client, None) for client in clients]
        has_both = len(clients) == PROCESSES and len(set(self._places(clients))) == PROCESSES
        return has_both and all(each is not None and sum(each.values()) == total for each in counted)

    def _places(self, clients: list[Client]) -> list[str | None]:
        """Which process has each partition."""
        try:
            return [place["active"] for place in clients[0].ask("/v1/stores/counts").json()["partitions"]]
        except (OSError, HTTPException, KeyError):
            return []

    def close(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait(60)


@contextmanager
def _home(name: str) -> Iterator[Mapping[str, Any]]:
    """The settings of a home of topics, which is there inside."""
    if name == "embedded":
        yield {}
        return
    with KafkaCluster(settings={"group.min.session.timeout.ms": 1_000}) as cluster:
        found = {"consumer.session.timeout.ms": 2_000, "consumer.heartbeat.interval.ms": 500}
        yield {"bootstrap.servers": cluster.bootstrap_servers, **found}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, _home(given.home) as home:
        fire = Fire(Path(folder), given.seed, home)
        askers = [
            threading.Thread(target=fire.ask, args=(random.Random(given.seed + number),)) for number in range(ASKERS)
        ]
        try:
            for asker in askers:
                asker.start()
            for number in range(1, given.rounds + 1):
                begun_s = monotonic()
                fire.round()
                so_far = f"{len(fire.tally.answers):,} answers, {fire.tally.retries:,} retries"
                print(f"round {number}: {so_far}, {monotonic() - begun_s:.1f} s", flush=True)
        finally:
            fire.stopping.set()
            for asker in askers:
                asker.join()
            fire.close()
        wrong = fire.tally.wrong(fire.world)
    print(*wrong[:20], sep="\n", end="\n" if wrong else "")
    tally = fire.tally
    helped = sum(answer.has_help for answer in tally.answers)
    counts = f"{len(tally.answers):,} answers, {helped:,} with help of the other process"
    print(f"seed {given.seed}: {counts}, {tally.retries:,} retries, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""A run under a judge: topics in a home, the judge's process, and the processes of the application."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from kstreams.log import open_log
from tests.faults.request import Counts, Request
from tests.support.kafka_cluster import KafkaCluster

APP = Path(__file__).with_name("visits_app.py")
ROOT = Path(__file__).parents[2]
SESSION_S = 6.0
SETTINGS: dict[str, Any] = {
    "application.id": "shared",
    "statestore.cache.max.bytes": 0,
    "commit.interval.ms": 100,
    "consumer.session.timeout.ms": int(SESSION_S * 1000),
    "consumer.heartbeat.interval.ms": 1_000,
}
TOPICS = {"visits": 4, "orders": 4, "customers": 4, "counts": 2, "finals": 2, "named": 2, "loads": 2, "dead": 1}
LONGEST_S = float(os.environ.get("FAULTS_LONGEST_S", "300"))


class Home:
    """The topics of a run.

    Parameters
    ----------
    folder : Path
        For all files of the run.
    cluster : KafkaCluster or None
        None for an embedded log.
    """

    def __init__(self, folder: Path, cluster: KafkaCluster | None) -> None:
        self.folder = folder
        self.cluster = cluster
        servers = cluster.bootstrap_servers if cluster is not None else ""
        self.address = f"kafka:{servers}" if servers else f"log:{folder / 'log'}"
        self.settings: dict[str, Any] = {"bootstrap.servers": servers} if servers else {"log.dir": folder / "log"}

    def create(self, topics: Mapping[str, int]) -> None:
        """Create topics with their numbers of partitions."""
        with open_log(self.address) as log, log.admin() as admin:
            for name, partitions in topics.items():
                admin.create_topic(name, partitions)


@contextmanager
def opened_home(request: Request, nodes: int = 1) -> Iterator[Home]:
    """The home of a run, which is deleted at the end."""
    with ExitStack() as resources:
        folder = Path(tempfile.mkdtemp(prefix="kstreams-faults-"))
        resources.callback(shutil.rmtree, folder, ignore_errors=True)
        if request.home == "embedded":
            yield Home(folder, None)
        else:
            yield Home(folder, resources.enter_context(KafkaCluster(nodes)))


class Judge:
    """The judge's process.

    Parameters
    ----------
    home : Home
    request : Request
    numbers : bool
        Whether it expects numbers of a producer; otherwise the results of the application.
    **features
        Of the input: `poison_every`, `padding`.
    """

    def __init__(self, home: Home, request: Request, *, numbers: bool = False, **features: int) -> None:
        arguments = {
            "address": home.address,
            "once": request.is_once,
            "numbers": numbers,
            "input": {"seed": request.seed, "records": request.records, **features},
        }
        command = [sys.executable, "-m", "tests.faults.judge", json.dumps(arguments)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, do: str, **details: Any) -> dict[str, Any]:
        """Ask a question, and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **details}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The judge ended with {self._process.wait()}.")
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Fleet:
    """The processes of an application, each with a folder of its own for its state.

    Parameters
    ----------
    home : Home
    settings : mapping
    app : str
        The topology in `visits_app.py`.
    most_files : int
        The number of files that a process may open; 0 for no limit of its own.
    """

    def __init__(self, home: Home, settings: Mapping[str, Any], app: str = "topology", most_files: int = 0) -> None:
        self._home = home
        self._app = app
        self._most_files = most_files
        self._settings = {**SETTINGS, **home.settings, **settings}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._stopped: set[int] = set()
        self.kills = 0

    @property
    def numbers(self) -> list[int]:
        """The numbers of the running processes."""
        return sorted(self._processes)

    def state_folder(self, number: int) -> Path:
        return self._home.folder / f"state-{number}"

    def shift_file(self, number: int) -> Path:
        """The file that says by how many milliseconds the wall clock of a process is off."""
        return self._home.folder / f"shift-{number}"

    def pid(self, number: int) -> int:
        return self._processes[number].pid

    def start(self, number: int) -> None:
        """Start a process."""
        settings = {**self._settings, "state.dir": self.state_folder(number)}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = [sys.executable, "-m", "kstreams", "run", f"{APP}:{self._app}", *options]
        if self.shift_file(number).exists():
            texts = json.dumps({key: str(value) for key, value in settings.items()})
            command = [sys.executable, "-m", "tests.faults.jumping_process", texts, str(self.shift_file(number))]
        with (self._home.folder / f"process-{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        if self._most_files:
            limits = (self._most_files, self._most_files)
            resource.prlimit(self._processes[number].pid, resource.RLIMIT_NOFILE, limits)

    def check(self) -> None:
        """Raise RuntimeError if a process has ended by itself."""
        for number, process in self._processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"Process {number} ended with {process.returncode}:\n{self.output(number)}")

    def output(self, number: int) -> str:
        return (self._home.folder / f"process-{number}.log").read_text(errors="replace")[-3000:]

    def kill(self, number: int) -> None:
        """Kill a process (SIGKILL)."""
        self.check()
        process = self._processes.pop(number)
        process.kill()
        process.wait()
        self.kills += 1

    def end(self, number: int) -> None:
        """Let a process end in order (SIGTERM); one that has just been started may not handle the signal yet."""
        self._processes[number].terminate()
        if self._processes[number].wait(90) not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            raise RuntimeError(f"Process {number} ended with an error when it was stopped:\n{self.output(number)}")
        del self._processes[number]

    def suspend(self, number: int) -> None:
        """Stop a process (SIGSTOP)."""
        self._processes[number].send_signal(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Let a process go on (SIGCONT); start it again if another process has ended it meanwhile."""
        process = self._processes[number]
        process.send_signal(signal.SIGCONT)
        if process.poll() == -signal.SIGKILL:
            self.kills += 1
            self.start(number)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


class JudgedRun:
    """An application of several processes under a judge.

    Parameters
    ----------
    request : Request
    home : Home
    judge : Judge
    fleet : Fleet
    """

    def __init__(self, request: Request, home: Home, judge: Judge, fleet: Fleet) -> None:
        self.request = request
        self.home = home
        self.judge = judge
        self.fleet = fleet
        self.chance = random.Random(request.seed)
        self.faults = 0
        self.wrong: list[str] = []

    def write(self, share: float) -> None:
        """Let the judge write input up to a share of all."""
        self.judge.ask("write", share=share)

    def rounds(self) -> Iterator[int]:
        """Write the input in as many parts as there are rounds; each round is a fault."""
        rounds = self.request.rounds
        self.write(1 / (rounds + 1) / 2)
        self.catch_up()
        for number in range(rounds):
            self.write((number + 1) / (rounds + 1))
            sleep(self.chance.uniform(0.0, 1.0))
            self.fleet.check()
            yield number
            self.faults += 1
            self.write((number + 1.5) / (rounds + 1))
        self.write(1.0)

    def catch_up(self) -> None:
        """Wait until the application has counted all visits that are written."""
        self._wait_until(lambda: not self.judge.ask("progress")["behind"])

    def counts(self) -> Counts:
        """Wait for the results, close all windows, and return what the judge counts."""
        self.catch_up()
        self.judge.ask("close")
        self._wait_until(lambda: self.judge.ask("complete")["complete"])
        for number in self.fleet.numbers:
            self.fleet.end(number)
        verdict = self.judge.ask("verdict")
        self.wrong += verdict.pop("wrong")
        return Counts(kills=self.fleet.kills, faults=self.faults, wrong=self.wrong, **verdict)

    def _wait_until(self, is_reached: Callable[[], bool]) -> None:
        """Wait at most `LONGEST_S`; the verdict says what is missing then."""
        end = monotonic() + LONGEST_S
        while not is_reached() and monotonic() < end:
            self.fleet.check()
            sleep(0.5)


@contextmanager
def judged_run(
    request: Request,
    *,
    processes: int = 3,
    nodes: int = 1,
    app: str = "topology",
    settings: Mapping[str, Any] | None = None,
    features: Mapping[str, int] | None = None,
    most_files: int = 0,
) -> Iterator[JudgedRun]:
    """Start the application and its judge; all processes end with the block."""
    with ExitStack() as resources:
        home = resources.enter_context(opened_home(request, nodes))
        home.create(TOPICS)
        judge = Judge(home, request, **(features or {}))
        resources.callback(judge.close)
        guarantee = {"processing.guarantee": request.guarantee}
        fleet = Fleet(home, {**guarantee, **(settings or {})}, app, most_files)
        resources.callback(fleet.close)
        for number in range(processes):
            fleet.start(number)
        yield JudgedRun(request, home, judge, fleet)

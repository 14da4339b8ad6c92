"""Kills on a standalone Spark cluster: `python -m tests.faults.cluster --executor-kills 20 --driver-kills 10`.

A master and workers on loopback run the application `shop.py`, or with `--scene flights` that of the example, over an
embedded log, or with `--home kafka` from Kafka to Kafka; with `--delta` into Delta tables too. `--scene sales` runs as
queries of Spark (`spark.kstreams.path=relational`), all others as tasks. With `--dynamic-allocation`, Spark adds
executors for waiting tasks and removes idle ones. Executors, their
Python workers, the driver and (`--broker-kills`) the broker are killed at random moments of random steps; a driver
that has ended is started again, until all input is processed. Then its results are compared with those of an
undisturbed native run over the same topics. `--checkpoint s3` keeps the checkpoint on an S3 server of this machine.
The exit status is 1 when a result differs, the log is damaged, a kill found nothing to kill, or a process is left
behind.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kstreams.modules.installed import PACKAGE
from kstreams.runtime.spark.storage.opening import open_storage
from tests.docs.pages import snippets
from tests.faults.cluster_scene import (
    SCENES,
    Difference,
    Scene,
    command,
    compare,
    compare_tables,
    environment,
    run_natively,
)
from tests.faults.processes import MARK, Processes, end, end_all
from tests.faults.topic_homes import Topics, opened_topics
from tests.spark.conftest import LITTLE_CPU
from tests.spark.s3_server import s3_server
from tests.spark.standalone import standalone

EXECUTOR, WORKER, DRIVER, BROKER = "executor", "Python worker", "driver", "broker"
WARNINGS = """rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""
"""What Spark logs: lost tasks are among it."""
HANGS_AFTER_S = 600
MOST_RESTARTS = 5
"""How many drivers may end by themselves: Spark gives up a step of which one task failed four times."""


DYNAMIC_ALLOCATION = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.executor.cores": "1",
}


class Given(NamedTuple):
    """What is asked for: how much input, in how many steps, and how many kills of each kind."""

    rows: int = 1_000_000
    steps: int = 40
    kills: Mapping[str, int] = {EXECUTOR: 20, WORKER: 5, DRIVER: 10}
    seed: int = 1
    checkpoint: str = "local"
    home: str = "embedded"
    scene: str = "shop"
    delta: bool = False
    workers: int = 2
    brokers: int = 1
    dynamic_allocation: bool = False
    supervised: bool = False


class Kill(NamedTuple):
    """One kill: from which step on, and after which share of a step's time."""

    step: int
    delay: float
    kind: str


def plan(given: Given) -> list[Kill]:
    """The kills, in order: at random moments of all steps but the last quarter, which may be over too soon."""
    chance = random.Random(given.seed)
    kinds = [kind for kind, count in given.kills.items() for _ in range(count)]
    return sorted(Kill(chance.randrange(given.steps * 3 // 4), chance.random(), kind) for kind in kinds)


# --- the steps, as they are told by the checkpoint -------------------------------------------------------------------


class Query(NamedTuple):
    """The folders of a checkpoint in which a query notes a step when it begins, and when it is over."""

    begun: str
    done: str
    numbers_per_step: int


TASKS = Query("plans", "manifests", 2)
"""The steps of tasks, which note the plan of a step and the manifest of the state that it leaves."""


def queries_of(scene: Scene) -> list[Query]:
    """The queries of a scene: its tasks, or each of the queries of Spark that it runs as."""
    spark_queries = [Query(f"query-{name}/offsets", f"query-{name}/commits", 1) for name in scene.spark_queries]
    return spark_queries or [TASKS]


class Steps:
    """Which step runs, as the checkpoint tells."""

    def __init__(self, location: str, conf: Mapping[str, str], queries: Sequence[Query]) -> None:
        self._storage, self._queries = open_storage(location, conf), queries
        self._begun, self._since = -1, time.monotonic()
        self._times = deque[float](maxlen=9)

    def begun(self) -> int:
        """The last step that has begun, -1 for none."""
        return max(self._newest(query.begun, query) for query in self._queries)

    def done(self) -> int:
        """The last step that was run."""
        return max(self._newest(query.done, query) for query in self._queries)

    def is_running(self) -> bool:
        """Whether a step has begun and is not over."""
        return any(self._newest(query.begun, query) > self._newest(query.done, query) for query in self._queries)

    def _newest(self, folder: str, query: Query) -> int:
        numbers = [re.match(r"\d+", name) for name in self._storage.names(folder)]
        return max((int(number[0]) // query.numbers_per_step for number in numbers if number), default=-1)

    @property
    def typical_s(self) -> float:
        """How long a step takes that is not disturbed: the least of the last ones."""
        return min(self._times, default=0.5)

    def have_reached(self, step: int) -> bool:
        """Whether this one, or a later one, is running."""
        begun = self.begun()
        if begun > self._begun:
            if self._begun >= 0:  # before the first one Spark starts
                self._times.append((time.monotonic() - self._since) / (begun - self._begun))
            self._begun, self._since = begun, time.monotonic()
        if time.monotonic() > self._since + HANGS_AFTER_S:
            raise TimeoutError(f"no step has begun for {HANGS_AFTER_S} s after step {self._begun}")
        return begun >= step and self.is_running()


# --- the driver ------------------------------------------------------------------------------------------------------


def supervisor() -> str:
    """Return the loop that the guide shows, with the interpreter of these tests."""
    page = PACKAGE.parent / "docs" / "how-to" / "spark.md"
    loop = next(snippet.text for snippet in snippets(page) if snippet.title == "supervise.sh")
    assert "kstreams submit" in loop
    return loop.replace("kstreams submit", f"{sys.executable} -m kstreams submit")


class Driver:
    """The application, submitted; started again as often as it takes, here or by a supervisor."""

    def __init__(self, submission: Sequence[str], folder: Path, supervisor: str | None = None, **more: str) -> None:
        by_supervisor = [] if supervisor is None else ["bash", "-c", supervisor, "supervise.sh", *submission[4:]]
        self._command = by_supervisor or submission
        self._is_supervised = supervisor is not None
        self._folder, self._environment = folder, environment(**more)
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        with (self._folder / f"driver-{self.starts}.log").open("wb") as out:
            given = {"env": self._environment, "cwd": self._folder, "start_new_session": True}
            self._process = subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT, **given)

    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.poll()

    def kill(self, mark: str, chance: random.Random) -> bool:
        """Kill the JVM of the driver, its Python process, or both; False while there is none."""
        mine = [each for each in Processes.of(mark).values() if _group(each.pid) == self._process.pid]
        jvm = [each.pid for each in mine if "org.apache.spark.deploy.SparkSubmit" in each.command.split()]
        python = [each.pid for each in mine if each.parent in jvm]
        if not jvm or not python:
            return False
        return any([end(pid) for pid in chance.choice([jvm, python, jvm + python])])

    def start_again(self) -> None:
        """Start a driver in place of a killed one, unless the supervisor does."""
        if not self._is_supervised:
            self.stop(seconds=10)
            self.start()

    def stop(self, seconds: float = 0) -> None:
        """Wait some seconds for what remains of it; then kill that too."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def last_words(self) -> str:
        """The end of what it wrote."""
        return (self._folder / f"driver-{self.starts}.log").read_text(errors="replace")[-3_000:]


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


# --- the kills -------------------------------------------------------------------------------------------------------


class Disturber:
    """Kills what a plan says while the application runs, and starts the driver again when it has ended."""

    def __init__(self, given: Given, driver: Driver, steps: Steps, topics: Topics, mark: str) -> None:
        self._driver, self._steps, self._topics, self._mark = driver, steps, topics, mark
        self._chance = random.Random(f"{given.seed}/victims")
        self.killed, self.in_a_step = Counter[str](), Counter[str]()
        self.gave_up = 0

    def carry_out(self, kills: list[Kill]) -> None:
        """All kills of a plan; those for which there was no time left are not counted."""
        for kill in kills:
            if not self._await(lambda step=kill.step: self._steps.have_reached(step)):
                return
            time.sleep(kill.delay * self._steps.typical_s)
            running = self._steps.is_running()
            if self._kill(kill.kind):
                self.killed[kill.kind] += 1
                self.in_a_step[kill.kind] += running
                print(f"{time.strftime('%X')} step {self._steps.begun()}: {kill.kind} killed", flush=True)

    def finish(self) -> None:
        """Let the application run to the end of its input."""
        self._await(lambda: self._steps.have_reached(sys.maxsize))

    def _kill(self, kind: str) -> bool:
        if kind == DRIVER:
            killed = self._await(lambda: self._driver.kill(self._mark, self._chance))
            self._driver.start_again()
            return killed
        return self._topics.bounce() if kind == BROKER else self._await(lambda: self._kill_one(kind))

    def _kill_one(self, kind: str) -> bool:
        """Kill any process of a kind; False while there is none."""
        alive = Processes.of(self._mark)
        pids = alive.executors() if kind == EXECUTOR else alive.python_workers()
        return bool(pids) and end(self._chance.choice(pids))

    def _await(self, happens: Callable[[], bool]) -> bool:
        """Wait for something; False when the input has ended before."""
        while not happens():
            status = self._driver.status()
            if status == 0:
                return False
            if status is not None:
                self._give_up(status)
            time.sleep(0.1)
        return True

    def _give_up(self, status: int) -> None:
        self.gave_up += 1
        said = self._driver.last_words()
        if self.gave_up > MOST_RESTARTS:
            raise AssertionError(f"the driver ends by itself again and again, now with status {status}:\n{said}")
        print(f"the driver ended with status {status} and is started again: ...{said[-600:]}", flush=True)
        self._driver.start()


# --- all together ----------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What a run came to."""

    killed: Counter[str]
    in_a_step: Counter[str]
    gave_up: int
    lost_tasks: int
    steps: int
    differences: list[Difference]
    damage: int
    left_behind: int

    def failures(self, given: Given) -> list[str]:
        """What was not as it must be."""
        missed = {kind: count - self.killed[kind] for kind, count in given.kills.items() if count > self.killed[kind]}
        differ = [each.name for each in self.differences if each.rows]
        return [
            *(f"{count} kills of a {kind} came too late" for kind, count in missed.items()),
            *(f"{topic} differs" for topic in differ),
            *(["the log is damaged"] if self.damage else []),
            *(["processes were left behind"] if self.left_behind else []),
        ]


def run(folder: Path, given: Given) -> Outcome:
    """The scene, the undisturbed run, and the disturbed one beside it; nothing of it goes on afterwards."""
    mark, scene = str(folder), SCENES[given.scene]
    left_behind = []
    with opened_topics(folder, given.home, given.brokers) as topics:
        scene.write(topics.address, given.rows, given.seed)
        with ExitStack() as resources:
            resources.callback(lambda: left_behind.append(end_all(mark)))
            run_natively(scene, folder, topics.settings, **{MARK: mark})
            disturber, driver, steps = _disturbed(folder, given, topics, resources)
            disturber.carry_out(plan(given))
            disturber.finish()
            done, starts = steps.done(), driver.starts
        counts = disturber.killed, disturber.in_a_step, disturber.gave_up, lost_tasks(folder, starts)
        differences = list(compare(scene, topics.address))
        if given.delta:
            differences += compare_tables(scene, topics.address, folder / "delta")
        return Outcome(*counts, done + 1, differences, topics.damage(), sum(left_behind))


def _disturbed(folder: Path, given: Given, topics: Topics, resources: ExitStack) -> tuple[Disturber, Driver, Steps]:
    """The application on a cluster, and what disturbs it."""
    mark = {MARK: str(folder), "SPARK_LOCAL_DIRS": str(folder / "local"), "TMPDIR": str(folder)}
    location, conf = resources.enter_context(_checkpoint(folder, given.checkpoint))
    master = resources.enter_context(standalone(folder, given.workers, cores=1, **mark))
    # A path to a socket has 107 bytes at most: too few for those below a test's folder.
    sockets = resources.enter_context(tempfile.TemporaryDirectory(prefix="ks-"))
    settings = (
        settings_of(folder, given, location) | topics.settings | conf | {"spark.python.unix.domain.socket.dir": sockets}
    )
    scene = SCENES[given.scene]
    submission = command(["submit", str(scene.app), "--master", master], settings)
    driver = Driver(submission, folder, supervisor() if given.supervised else None, **mark)
    resources.callback(driver.stop)
    steps = Steps(f"{location}/{scene.name}", conf, queries_of(scene))
    return Disturber(given, driver, steps, topics, str(folder)), driver, steps


@contextmanager
def _checkpoint(folder: Path, where: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The location of checkpoints, and the settings with which it is reached."""
    if where == "local":
        yield str(folder / "checkpoint"), {}
    else:
        with s3_server() as server:
            yield server.location("cluster"), server.conf


def settings_of(folder: Path, given: Given, location: str) -> dict[str, Any]:
    """What the application is run with on Spark: small heaps, and little that is compiled."""
    logged = folder / "log4j2.properties"
    logged.write_text(WARNINGS)
    java = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir={folder} -Dlog4j2.configurationFile={logged}"
    return {
        **LITTLE_CPU,
        **(DYNAMIC_ALLOCATION if given.dynamic_allocation else {}),
        "spark.kstreams.path": "relational" if SCENES[given.scene].spark_queries else "task",
        "spark.kstreams.checkpoint": location,
        "spark.kstreams.delta": folder / "delta" if given.delta else "none",
        "spark.kstreams.max.records": -(-given.rows // given.steps),
        "spark.kstreams.snapshot.every": 5,
        "spark.sql.shuffle.partitions": 4,
        "spark.driver.memory": "1g",
        "spark.executor.memory": "768m",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.python.daemon.module": "kstreams.runtime.spark.cluster.worker_daemon",
    }


def lost_tasks(folder: Path, starts: int) -> int:
    """How many attempts of tasks Spark lost, as it says in its log."""
    texts = [(folder / f"driver-{start + 1}.log").read_text(errors="replace") for start in range(starts)]
    return sum(len(re.findall(r"Lost task \d", text)) for text in texts)


def report(given: Given, outcome: Outcome) -> int:
    """Print the counts; the number of failures."""
    for kind, count in outcome.killed.items():
        print(f"{kind}: {count} killed, {outcome.in_a_step[kind]} of them in a step")
    print(f"{outcome.steps} steps, {outcome.lost_tasks} attempts of tasks lost, {outcome.gave_up} drivers gave up")
    for each in outcome.differences:
        print(f"{each.name}: {each.records:,} records, of which as {each.compared} {each.rows:,} differ")
    print(f"{outcome.damage} damaged places in the log, {outcome.left_behind} processes left behind")
    failures = outcome.failures(given)
    print(f"failed: {', '.join(failures)}" if failures else "equal")
    return len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.cluster", description=__doc__)
    parser.add_argument("--executor-kills", type=int, default=20)
    parser.add_argument("--worker-kills", type=int, default=5, help="of Python workers of executors")
    parser.add_argument("--driver-kills", type=int, default=10)
    parser.add_argument("--broker-kills", type=int, default=0, help="each is started again at once; for kafka")
    parser.add_argument("--home", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--scene", choices=list(SCENES), default="shop")
    parser.add_argument("--delta", action="store_true", help="write Delta tables too, and compare them with the topics")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2, help="each a host of its own to Spark, with one core")
    parser.add_argument("--brokers", type=int, default=1, help="for kafka")
    parser.add_argument("--dynamic-allocation", action="store_true")
    parser.add_argument("--supervised", action="store_true", help="by the loop of docs/how-to/spark.md")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--checkpoint", choices=["local", "s3"], default="local")
    parser.add_argument("--folder", type=Path, help="an empty one, in which everything stays")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends like an interrupt: with nothing left behind
    kills = {EXECUTOR: options.executor_kills, WORKER: options.worker_kills, DRIVER: options.driver_kills}
    kills[BROKER] = options.broker_kills
    given = Given(
        options.rows,
        options.steps,
        kills,
        options.seed,
        checkpoint=options.checkpoint,
        home=options.home,
        scene=options.scene,
        delta=options.delta,
        workers=options.workers,
        brokers=options.brokers,
        dynamic_allocation=options.dynamic_allocation,
        supervised=options.supervised,
    )
    with ExitStack() as resources:
        scratch = options.folder or resources.enter_context(tempfile.TemporaryDirectory(prefix="kstreams-cluster-"))
        return int(report(given, run(Path(scratch), given)) > 0)


if __name__ == "__main__":
    sys.exit(main())

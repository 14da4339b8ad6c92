"""One run of a query on a system: until all results are there, compared with DuckDB, with what it took.

A run is done when nothing was written and hardly any CPU was used for some seconds; the last write is its end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.nexmark.answers import Verifier
from benchmarks.nexmark.generator import TOPIC, Settings, all_events, write_topic
from benchmarks.nexmark.processes import Sampler, cpu_of, machine_cpu
from benchmarks.nexmark.systems import System
from kstreams.errors import KStreamsError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from tests.support.kafka_cluster import KafkaCluster

PARTITIONS = 4
ROOT = Path(__file__).parents[2]
QUIET_S = 3.0
PATIENCE_S = 30.0
LONGEST_S = 600.0


@dataclass(frozen=True)
class Result:
    """What a run took. `wrong` says why its figures do not count."""

    system: str
    guarantee: str
    query: str
    events: int
    whole_s: float = 0.0
    warm_s: float = 0.0
    cpu_s: float = 0.0
    warm_cpu_s: float = 0.0
    peak_mib: float = 0.0
    state_bytes: int = 0
    restart_s: float = 0.0
    other_cores: float = 0.0
    wrong: str = ""

    @property
    def rate(self) -> float:
        """Events per second of the whole run, with the start of the process."""
        return self.events / self.whole_s

    @property
    def warm_rate(self) -> float:
        """Events per second of the second half."""
        return self.events / 2 / self.warm_s if self.warm_s else 0.0

    @property
    def cores(self) -> float:
        """Cores used."""
        return self.cpu_s / self.whole_s

    @property
    def core_seconds(self) -> float:
        """Core-seconds per million events, of the whole run: Nexmark's own measure."""
        return 1e6 * self.cpu_s / self.events

    @property
    def warm_core_seconds(self) -> float:
        """Core-seconds per million events of the second half."""
        return 2e6 * self.warm_cpu_s / self.events


class Broker:
    """A Kafka broker with the events in a topic, and the answers over them.

    Parameters
    ----------
    cluster : KafkaCluster
    settings : Settings
    """

    def __init__(self, cluster: KafkaCluster, settings: Settings) -> None:
        self.bootstrap = cluster.bootstrap_servers
        self.events = settings.events
        self._process = cluster.process_id()
        self._log = open_log(f"kafka:{self.bootstrap}")
        self._admin = self._log.admin()
        self._verifier = Verifier(all_events(settings))
        write_topic(self._log, settings, PARTITIONS)

    def cpu(self) -> float:
        """Return the CPU seconds that the broker has taken."""
        return cpu_of(self._process)

    def renew_topic(self, topic: str) -> None:
        """Delete a topic, and create it again."""
        if topic in self._admin.topics():
            self._admin.delete_topic(topic)
        deadline = time.monotonic() + 30
        while topic not in self._admin.topics([topic]):
            with suppress(KStreamsError):  # Kafka still deletes it
                self._admin.create_topic(topic, PARTITIONS)
            if time.monotonic() > deadline:
                raise RuntimeError(f"Kafka did not create {topic} again within 30 s")
            time.sleep(0.1)

    def delete_topics(self, prefix: str) -> None:
        """Delete the internal topics of an application."""
        for topic in self._admin.topics():
            if topic.startswith(prefix):
                self._admin.delete_topic(topic)

    def size(self, topic: str) -> int:
        """Return the sum of the end offsets of a topic."""
        return sum(self._admin.end_offsets([TopicPartition(topic, number) for number in range(PARTITIONS)]).values())

    def differences(self, query: str) -> list[str]:
        """Return how the results of a query differ from the answer."""
        return self._verifier.differences(query, self._records(query))

    def _records(self, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
        with self._log.consumer({"isolation.level": "read_committed"}) as consumer:
            sources = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            consumer.assign(sources)
            while not all(map(consumer.is_at_end, sources)):
                for batch in consumer.poll(0.1, 100_000):
                    yield from zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True)


class Program:
    """A running program of a system, with its samples.

    Parameters
    ----------
    broker : Broker
    system : System
    query, name : str
        The name is the application's id.
    folder : Path
        Of its state and output.
    """

    def __init__(self, broker: Broker, system: System, query: str, name: str, folder: Path) -> None:
        self._broker = broker
        self._query = query
        environment = {
            "QUERY": query,
            "FORM": system.form,
            "BOOTSTRAP": broker.bootstrap,
            "ID": name,
            "STATE": str(folder / "state"),
            "EVENTS": str(broker.events),
            "SETTINGS": json.dumps(system.settings),
            "PYTHONPATH": str(ROOT),
        }
        self.begun = time.monotonic()
        self.half: float = 0.0
        self._size = 0
        self._written = self.begun
        self._log = (folder / "log").open("a")
        self._process = subprocess.Popen(
            [*map(str, system.command())],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.sampler = Sampler(self._process.pid)
        self.sampler.start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_half(self) -> None:
        """Wait until it has processed half of the events."""
        while not self.half:
            self._check()
            time.sleep(0.05)

    def wait_for_growth(self, size: int) -> float:
        """Return the moment when the topic of results has grown."""
        while self._broker.size(self._query) <= size:
            self._check()
            time.sleep(0.05)
        return time.monotonic()

    def wait_until_done(self) -> tuple[float, list[str]]:
        """Return the moment of the last write, and how the results differ from the answer.

        A process that gets no CPU looks as if it were done. So it has some more time while its results are wrong.
        """
        self._wait_until_quiet()
        while (wrong := self._broker.differences(self._query)) and time.monotonic() - self._written < PATIENCE_S:
            self._wait_until_quiet()
        return self._written, wrong

    def _wait_until_quiet(self) -> None:
        quiet = False
        while not quiet:
            self._check()
            time.sleep(0.1)
            size = self._broker.size(self._query)
            if size != self._size:
                self._size = size
                self._written = time.monotonic()
            is_silent = time.monotonic() - self._written > QUIET_S
            quiet = is_silent and bool(self.half) and self.sampler.is_idle(QUIET_S)

    def end(self, number: signal.Signals) -> None:
        """End it by a signal."""
        self._process.send_signal(number)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.sampler.stop()
        self._log.close()

    def _check(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(f"ended with {self._process.returncode}: {Path(self._log.name).read_text()[-500:]}")
        if time.monotonic() - self.begun > LONGEST_S:
            raise RuntimeError(f"took more than {LONGEST_S:.0f} s")

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("half"):
                self.half = time.monotonic()


def measure(broker: Broker, system: System, query: str) -> Result:
    """Run a query once undisturbed; under exactly once, once more with a kill in the middle."""
    with tempfile.TemporaryDirectory(prefix="nexmark-") as folder:
        result = _whole(broker, system, query, Path(folder))
    if result.wrong or system.guarantee != "exactly once":
        return result
    with tempfile.TemporaryDirectory(prefix="nexmark-") as folder:
        return _killed(broker, system, query, Path(folder), result)


def _whole(broker: Broker, system: System, query: str, folder: Path) -> Result:
    result = Result(system.name, system.guarantee, query, broker.events)
    name = _new_name(broker, query)
    broker_before = broker.cpu()
    machine_before = machine_cpu()
    program = Program(broker, system, query, name, folder)
    try:
        done, wrong = program.wait_until_done()
        seconds = time.monotonic() - program.begun
        others = machine_cpu() - machine_before - (broker.cpu() - broker_before) - program.sampler.cpu_until(done)
    except RuntimeError as error:
        program.end(signal.SIGKILL)
        return _failed(result, str(error))
    program.end(signal.SIGTERM)
    figures = {
        "whole_s": done - program.begun,
        "warm_s": done - program.half,
        "cpu_s": program.sampler.cpu_until(done),
        "warm_cpu_s": program.sampler.cpu_until(done) - program.sampler.cpu_until(program.half),
        "peak_mib": program.sampler.peak_bytes / 2**20,
        "state_bytes": sum(file.stat().st_size for file in (folder / "state").rglob("*") if file.is_file()),
        "other_cores": max(others / seconds, 0.0),
        "wrong": "; ".join(wrong),
    }
    broker.delete_topics(name)
    return Result(**{**asdict(result), **figures})


def _killed(broker: Broker, system: System, query: str, folder: Path, result: Result) -> Result:
    """Kill it at half of the events, and measure how long its successor takes to its first result."""
    name = _new_name(broker, query)
    program = Program(broker, system, query, name, folder)
    try:
        program.wait_until_half()
        program.end(signal.SIGKILL)
        size = broker.size(query)
        program = Program(broker, system, query, name, folder)
        program.half = program.begun
        restarted = program.wait_for_growth(size)
        _, wrong = program.wait_until_done()
    except RuntimeError as error:
        program.end(signal.SIGKILL)
        return _failed(result, f"after a kill: {error}")
    program.end(signal.SIGTERM)
    broker.delete_topics(name)
    after_kill = "; ".join(f"after a kill: {difference}" for difference in wrong)
    return Result(**{**asdict(result), "restart_s": restarted - program.begun, "wrong": after_kill})


def _new_name(broker: Broker, query: str) -> str:
    broker.renew_topic(query)
    return f"{TOPIC}-{query}-{time.time_ns()}"


def _failed(result: Result, error: str) -> Result:
    return Result(**{**asdict(result), "wrong": " ".join(error.split())})

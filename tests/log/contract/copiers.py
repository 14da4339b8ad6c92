"""Processes that copy a topic as members of a group, exactly once; they can be killed."""

import fcntl
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log
from tests.log.contract.reading import values_of
from tests.log.embedded.files import kill, start

ROWS, PARTITIONS = 400, 6
SOURCES = [TopicPartition("words", number) for number in range(PARTITIONS)]

# Copies words to the topic `out`, exactly once, until the file `end` is there; says what it gets and where it fails.
COPIER = """
import pathlib, sys, time
from kstreams.errors import CommitFailedError, RebalanceInProgressError
from kstreams.log import OffsetAndMetadata, home_at
address, folder, name, strategy, pause = sys.argv[1:6]
end = pathlib.Path(folder, "end")
settings = {
    "group.id": "copiers", "client.id": name, "partition.assignment.strategy": strategy,
    "session.timeout.ms": 1_500, "heartbeat.interval.ms": 100,
}
writes = {"transactional.id": name, "transaction.timeout.ms": 600_000}
def say(what):
    return lambda sources: print(what, *(source.partition for source in sources), flush=True)
with home_at(address).open() as log, log.consumer(settings) as consumer, log.producer(writes) as producer:
    consumer.subscribe(["words"], on_assigned=say("+"), on_revoked=say("-"), on_lost=say("!"))
    while not end.exists():
        batches = consumer.poll(timeout=0.1, max_records=15)
        if not batches:
            continue
        me = consumer.group_metadata()
        producer.begin_transaction()
        for batch in batches:
            for row in batch.rows():
                producer.send("out", None, row.value)
        time.sleep(float(pause))
        offsets = {batch.source: OffsetAndMetadata(int(batch.offsets[-1]) + 1) for batch in batches}
        try:
            producer.commit_transaction(offsets, me)
        except (CommitFailedError, RebalanceInProgressError) as error:
            print("refused", type(error).__name__, flush=True)
            producer.abort_transaction()
            known = consumer.committed(consumer.assignment())
            for source in consumer.assignment():
                consumer.seek(source, known[source].offset if source in known else 0)
"""


class Copiers:
    """Processes that copy a topic together."""

    def __init__(self, log: Log, address: str, folder: Path, strategy: str) -> None:
        self._log, self._address, self._folder, self._strategy = log, address, folder, strategy
        self.running: dict[str, subprocess.Popen[str]] = {}
        self._born = 0

    def start(self, pause: float = 0.02) -> str:
        self._born += 1
        name = f"copier{self._born}"
        self.running[name] = start(COPIER, self._address, self._folder, name, self._strategy, pause)
        return name

    def hang(self, name: str) -> None:
        """Stop a process at a moment when it holds no lock of the log: others would wait for that, too."""
        with no_locks_of(self._address):
            os.kill(self.running[name].pid, signal.SIGSTOP)
            wait_until(lambda: is_stopped(self.running[name].pid))

    def go_on(self, name: str) -> None:
        os.kill(self.running[name].pid, signal.SIGCONT)

    def kill(self, name: str) -> str:
        output = kill(self.running.pop(name))
        self._log.producer({"transactional.id": name}).close()  # ends what it left open, as a restart would
        return output

    def finish(self) -> dict[str, str]:
        """Let all end; what they said."""
        (self._folder / "end").touch()
        said = {}
        for name, process in self.running.items():
            said[name], _ = process.communicate(timeout=120)
            assert process.returncode == 0, said[name]
        self.running.clear()
        return said

    def __enter__(self) -> "Copiers":
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


@contextmanager
def no_locks_of(address: str) -> Iterator[None]:
    """Keep all other processes from holding a lock for which others would wait; brokers have none.

    The locks are taken in the order of a process that appends: it holds those of the partition and of its membership
    while it waits for the catalogue.
    """
    if not address.startswith("log:"):
        yield
        return
    folder = Path(address.removeprefix("log:"))
    with ExitStack() as locks:
        for path in [*folder.glob("topics/*/*/lock"), *folder.glob("members/*.appends")]:
            fcntl.flock(locks.enter_context(path.open("rb")), fcntl.LOCK_EX)
        catalogue = locks.enter_context(closing(sqlite3.connect(folder / "catalogue.sqlite", timeout=60)))
        catalogue.execute("BEGIN EXCLUSIVE")
        yield
        catalogue.rollback()


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def fill_words(log: Log) -> None:
    """Write what is to be copied."""
    log.admin().create_topic("words", PARTITIONS)
    log.admin().create_topic("out")
    with log.producer() as producer:
        for row in range(ROWS):
            for source in SOURCES:
                producer.send("words", None, f"{source.partition} {row}".encode(), partition=source.partition)


def copied(log: Log) -> int:
    return sum(at.offset for at in log.admin().committed("copiers", SOURCES).values())


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came there")


def assert_copied_once(log: Log) -> None:
    expected = sorted(f"{number} {row}".encode() for number in range(PARTITIONS) for row in range(ROWS))
    assert sorted(value or b"" for value in values_of(log, "out")) == expected

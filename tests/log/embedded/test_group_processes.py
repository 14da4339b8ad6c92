"""Members of a group in several processes, some of which are killed or hang: the others go on with their partitions."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kstreams.batch import TopicPartition
from kstreams.log import EmbeddedLog, open_log, verify
from tests.log.contract.reading import values_of
from tests.log.embedded.files import kill, start

ROWS, PARTITIONS = 400, 6
SOURCES = [TopicPartition("words", number) for number in range(PARTITIONS)]

# Copies words to the topic `out`, exactly once, until the file `end` is there; says what it gets and where it fails.
COPIER = """
import pathlib, sys, time
from kstreams.errors import CommitFailedError, RebalanceInProgressError
from kstreams.log import OffsetAndMetadata, open_log
folder, name, strategy, pause = sys.argv[1:5]
end = pathlib.Path(folder, "end")
settings = {
    "group.id": "copiers", "client.id": name, "partition.assignment.strategy": strategy,
    "session.timeout.ms": 1000, "heartbeat.interval.ms": 100,
}
writes = {"transactional.id": name, "transaction.timeout.ms": 600_000}
def say(what):
    return lambda sources: print(what, *(source.partition for source in sources), flush=True)
with open_log(folder) as log, log.consumer(settings) as consumer, log.producer(writes) as producer:
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

    def __init__(self, folder: Path, strategy: str) -> None:
        self.folder, self._strategy = folder, strategy
        self.running: dict[str, subprocess.Popen[str]] = {}
        self._born = 0

    def start(self, pause: float = 0.02) -> str:
        self._born += 1
        name = f"copier{self._born}"
        self.running[name] = start(COPIER, self.folder, name, self._strategy, pause)
        return name

    def kill(self, name: str) -> str:
        output = kill(self.running.pop(name))
        with open_log(self.folder) as log:
            log.producer({"transactional.id": name}).close()  # ends what it left open, as a restart would
        return output

    def finish(self) -> dict[str, str]:
        """Let all end; what they said."""
        (self.folder / "end").touch()
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


def fill(folder: Path) -> EmbeddedLog:
    log = open_log(folder)
    log.admin().create_topic("words", PARTITIONS)
    log.admin().create_topic("out")
    with log.producer() as producer:
        for row in range(ROWS):
            for source in SOURCES:
                producer.send("words", None, f"{source.partition} {row}".encode(), partition=source.partition)
    return log


def copied(log: EmbeddedLog) -> int:
    return sum(at.offset for at in log.admin().committed("copiers", SOURCES).values())


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came there")


def assert_copied_once(log: EmbeddedLog) -> None:
    expected = sorted(f"{number} {row}".encode() for number in range(PARTITIONS) for row in range(ROWS))
    assert sorted(value or b"" for value in values_of(log, "out")) == expected


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_when_members_are_killed_others_go_on_and_everything_is_read_once(tmp_path: Path, strategy: str) -> None:
    chosen = random.Random(5)
    with fill(tmp_path) as log, Copiers(tmp_path, strategy) as copiers:
        for _ in range(3):
            copiers.start()
        for life in range(1, 7):
            wait_until(lambda life=life: copied(log) >= life * 250)
            copiers.kill(chosen.choice(sorted(copiers.running)))
            copiers.start()
        wait_until(lambda: copied(log) == ROWS * PARTITIONS)
        copiers.finish()
        assert_copied_once(log)
        assert log.admin().describe_group("copiers").members == ()
    assert verify(tmp_path) == []


def test_a_killed_member_is_missed_at_once_whatever_its_session_time_out(tmp_path: Path) -> None:
    with fill(tmp_path) as log, Copiers(tmp_path, "cooperative-sticky") as copiers:
        victim = copiers.start(pause=1_000)  # it gets everything and never commits
        wait_until(lambda: bool(log.admin().describe_group("copiers").members))
        with log.consumer({"group.id": "copiers", "session.timeout.ms": 10**9}) as heir:
            heir.subscribe(["words"])
            wait_until(lambda: not heir.poll(0.01) and len(log.admin().describe_group("copiers").members) == 2)
            copiers.kill(victim)
            wait_until(lambda: not heir.poll(0.01) and len(heir.assignment()) == PARTITIONS)


def test_a_member_that_hangs_loses_its_partitions_and_what_it_does_later_is_refused(tmp_path: Path) -> None:
    with fill(tmp_path) as log, Copiers(tmp_path, "cooperative-sticky") as copiers:
        hung = copiers.start(pause=0.3)  # so it is stopped while it holds no lock of the log
        wait_until(lambda: copied(log) >= 100)
        os.kill(copiers.running[hung].pid, signal.SIGSTOP)
        copiers.start()
        wait_until(lambda: copied(log) == ROWS * PARTITIONS)
        os.kill(copiers.running[hung].pid, signal.SIGCONT)
        wait_until(lambda: len(log.admin().describe_group("copiers").members) == 2)
        said = copiers.finish()
        assert "! 0 1 2 3 4 5" in said[hung]
        assert_copied_once(log)

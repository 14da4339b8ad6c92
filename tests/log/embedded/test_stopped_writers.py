"""A process that is stopped while it holds a lock of the log does not hold up the others for ever."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path
from time import monotonic, sleep

import pytest

from kstreams.log import open_log, verify
from kstreams.os import stopped_holders
from tests.log.contract.reading import values_of
from tests.log.embedded.files import start

STOPPING = """
import os, signal, sys, time
from kstreams.log import open_log
from kstreams.log.embedded.disk import Disk

class Stopping(Disk):
    file = "nothing"
    stop = staticmethod(lambda: os.kill(os.getpid(), signal.SIGSTOP))
    def write_at(self, fd, parts, position):
        if os.readlink(f"/proc/self/fd/{fd}").endswith(self.file):
            print("holds the lock", flush=True)
            self.stop()
        super().write_at(fd, parts, position)

disk = Stopping()
with open_log(sys.argv[1], disk=disk) as log:
    producer = log.producer({"transactional.id": "old"} if sys.argv[2] == "catalogue.journal" else {})
    disk.file = sys.argv[2]
    if len(sys.argv) > 3:
        disk.stop = lambda: time.sleep(float(sys.argv[3]))
    if disk.file == "catalogue.journal":
        producer.begin_transaction()
    producer.send("words", b"k", b"old")
    producer.flush()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log; holders of its locks are looked at more often."""
    monkeypatch.setattr(stopped_holders, "PAUSE_S", 0.05)
    monkeypatch.setattr("kstreams.log.embedded.catalogue.journaled_database._WAIT_S", 0.3)
    with open_log(tmp_path / "log") as log:
        log.admin().create_topic("words")
    return tmp_path / "log"


def started(folder: Path, file: str, *seconds: float) -> subprocess.Popen[str]:
    """A process that stops, or sleeps for seconds, before it writes a file, with the lock in its hands."""
    process = start(STOPPING, folder, file, *seconds)
    assert process.stdout is not None
    assert process.stdout.readline() == "holds the lock\n"
    return process


@pytest.mark.parametrize("file", ["head", ".log", "catalogue.journal"])
def test_others_go_on_without_a_writer_that_is_stopped(folder: Path, file: str) -> None:
    stopped = started(folder, file)
    with open_log(folder) as log, log.producer({"transactional.id": "new"}) as producer:
        producer.begin_transaction()
        producer.send("words", b"k", b"new")
        producer.commit_transaction()
        assert values_of(log, "words") == [b"new"]
    assert stopped.wait(10) == -signal.SIGKILL
    assert verify(folder) == []


def test_a_writer_that_is_slow_or_goes_on_in_time_is_waited_for(folder: Path) -> None:
    slow = started(folder, "head", 1.5)
    with open_log(folder) as log, log.producer() as producer:
        producer.send("words", b"k", b"new")
        producer.flush()
        assert values_of(log, "words") == [b"old", b"new"]
    assert slow.wait(10) == 0


def test_a_writer_that_goes_on_in_time_has_its_record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopped_holders, "PAUSE_S", 1.0)
    stopped = started(folder, "head")
    threading.Timer(1.5, stopped.send_signal, [signal.SIGCONT]).start()
    with open_log(folder) as log, log.producer() as producer:
        producer.send("words", b"k", b"new")
        producer.flush()
        assert values_of(log, "words") == [b"old", b"new"]
    assert stopped.wait(10) == 0


def test_a_stopped_writer_for_which_nobody_waits_is_left_alone(folder: Path) -> None:
    stopped = started(folder, "head")
    begun = monotonic()
    with open_log(folder) as log:
        while monotonic() - begun < 1:
            assert values_of(log, "words") == []
            sleep(0.1)
    assert stopped.poll() is None
    stopped.send_signal(signal.SIGCONT)
    assert stopped.wait(10) == 0

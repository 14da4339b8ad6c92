"""A signal stops a run between two records, however slow an operator is; what was processed is committed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from tests.cli.test_applications import COMMAND

SLOW = """
import time
import kstreams as ks

config = {"application.id": "slow", "commit.interval.ms": 600_000}
RECORDS = 4_000

def slowly(word: str) -> str:
    print("record", flush=True)
    time.sleep(0.02)
    return word

def forever(word: str) -> str:
    for _ in range(10):
        print("record", flush=True)
    time.sleep(600)
    return word

async def awaited(word: str) -> str:
    return slowly(word)

def in_batches(words):
    return [slowly(word) for word in words["value"].to_pylist()]

class Punctuated(ks.Processor[str, str, str, str]):
    def init(self, context):
        self.context = context
        for _ in range(500):
            context.schedule(1, ks.PunctuationType.WALL_CLOCK_TIME, self.wait)
    def wait(self, time_ms):
        print("record", flush=True)
        time.sleep(0.02)
    def process(self, record):
        self.context.forward(record)

topology = ks.StreamsBuilder()
words = topology.stream("words", key=str, value=str)
"""
KINDS = {
    "plain": "words.map_values(slowly).to('out')",
    "behind columns": "words.filter(ks.value != 'no').map_values(slowly).to('out')",
    "two inputs": "words.merge(topology.stream('more', key=str, value=str)).map_values(slowly).to('out')",
    "async": "words.map_values(awaited, concurrency=2).to('out')",
    "batches": "words.map_batch(in_batches, value=str, max_rows=10).to('out')",
    "punctuators": "words.process(Punctuated, key=str, value=str).to('out')",
    "never": "words.map_values(forever).to('out')",
    "counts": "words.map_values(slowly).group_by_key().count().to_stream().to('out')",
}


@pytest.fixture
def slow(kstreams: Any) -> Any:
    for topic in ("words", "more"):
        kstreams.ok("topics", "create", topic)
        kstreams.ok("produce", topic, "-s", "=", stdin="".join(f"{n}={n}\n" for n in range(3_000)))
    return kstreams


def stopped(folder: Path, kind: str, *signals: signal.Signals, started_by: Sequence[str] = ()) -> tuple[int, int]:
    """Run, send signals beside the tenth record; the exit status, and how many records began after that."""
    (folder / "slow.py").write_text(SLOW + KINDS[kind] + "\n")
    command = [*started_by, COMMAND, "run", "slow.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        for _ in range(10):
            assert running.stdout.readline(), running.stderr.read()
        for number in signals:
            running.send_signal(number)
            time.sleep(0.5)  # else the system makes one of two
        rest = running.stdout.read()
        assert "Traceback" not in running.stderr.read() or len(signals) > 1
        return running.wait(60), rest.count("record")


def positions(folder: Path) -> tuple[int, int]:
    """How far the application has committed, all inputs together, and how many records it has written."""
    with open_log(folder / ".kstreams" / "log") as log, log.admin() as admin:
        topics = admin.topics()
        read = [TopicPartition(t, p) for t in ("words", "more") for p in range(topics[t].partitions)]
        out = [TopicPartition("out", p) for p in range(topics["out"].partitions)]
        committed = admin.committed("slow", read)
        return sum(at.offset for at in committed.values()), sum(admin.end_offsets(out).values())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "never"])
def test_sigterm_beside_a_slow_operator_commits_what_was_processed_and_ends_with_0(slow: Any, kind: str) -> None:
    status, after = stopped(slow.folder, kind, signal.SIGTERM)
    assert status == 0
    assert after < 200  # of 3,000, on a machine however busy
    committed, written = positions(slow.folder)
    assert committed < 3_000 or kind == "punctuators"
    if kind != "counts":
        assert committed == written


def test_the_next_run_goes_on_exactly_there(slow: Any) -> None:
    stopped(slow.folder, "two inputs", signal.SIGTERM)
    app = slow.folder / "slow.py"
    app.write_text(app.read_text().replace("time.sleep(0.02)", "pass"))
    slow.ok("run", "slow.py", "--once")
    assert positions(slow.folder) == (6_000, 6_000)


def test_a_signal_while_the_application_is_loaded_ends_with_the_status_of_the_signal(kstreams: Any) -> None:
    interrupted_text = 'exec("import os, signal; os.kill(os.getpid(), signal.{}); import time; time.sleep(60)")\n'
    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        (kstreams.folder / "app.py").write_text(interrupted_text.format(number.name))
        ended = subprocess.run([sys.executable, "-m", "kstreams", "run", "app.py"], check=False)
        assert ended.returncode == status


def test_ctrl_c_commits_as_well_and_ends_with_130(slow: Any) -> None:
    status, after = stopped(slow.folder, "plain", signal.SIGINT)
    assert status == 130
    assert after < 200
    committed, written = positions(slow.folder)
    assert committed == written > 0


def test_a_run_in_the_background_leaves_ctrl_c_to_the_foreground(slow: Any) -> None:
    background = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")  # as `command &` in a script starts it
    status, _ = stopped(slow.folder, "plain", signal.SIGINT, signal.SIGTERM, started_by=background)
    assert status == 0  # that of the first signal that counts
    committed, written = positions(slow.folder)
    assert committed == written > 0


def test_a_second_signal_ends_it_at_once_and_loses_no_record(slow: Any) -> None:
    status, _ = stopped(slow.folder, "never", signal.SIGTERM, signal.SIGTERM)
    assert status == 128 + signal.SIGTERM
    committed, written = positions(slow.folder)
    assert (committed, written) == (0, 0)


def test_a_function_that_never_returns_does_not_keep_a_signal_from_ending_the_run(slow: Any) -> None:
    (slow.folder / "slow.py").write_text(SLOW + KINDS["never"] + "\n")
    command = [COMMAND, "run", "slow.py", "-c", "shutdown.timeout.ms=5000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        said = running.stderr.read()
        assert running.wait(60) == 1
    assert re.search(r"did not stop within 5 s .*map_values\(\) at slow.py:\d+ .* of task 0_\d", said)

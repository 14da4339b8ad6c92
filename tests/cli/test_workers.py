"""`kstreams run --workers N`: processes that share the tasks; one that dies is started again, a signal ends all."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_applications import COMMAND
from tests.native.world import WAIT_S, World, counted, lines, until

APP = """
import kstreams as ks

config = {"application.id": "app", "commit.interval.ms": 50, "processing.guarantee": "exactly_once_v2"}
topology = ks.StreamsBuilder()
words = topology.stream("lines", key=str, value=str).flat_map_values(lambda line: line.split(), value=str)
counts = words.group_by(lambda _, word: word, key=str).count(materialized="counts")
counts.to_stream().to("counts", key=str, value=int)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "app.py").write_text(APP)
    return World(tmp_path)


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in found.split()]


def test_a_worker_that_is_killed_is_started_again_and_a_signal_ends_all(world: World) -> None:
    world.create("lines", 2)
    world.create("counts")
    world.write("lines", lines(50))
    given = ["--log-dir", str(world.folder / "log"), "--state-dir", str(world.folder / "state")]
    command = [COMMAND, "run", "app.py", "--workers", "2", *given]
    with subprocess.Popen(command, cwd=world.folder, stderr=subprocess.PIPE, text=True) as supervisor:
        until(lambda: world.table("counts", value=int) == counted(50))
        os.kill(victim := children(supervisor.pid)[0], signal.SIGKILL)
        until(lambda: len(children(supervisor.pid)) == 2 and victim not in children(supervisor.pid))
        world.write("lines", lines(50, 50))
        until(lambda: world.table("counts", value=int) == counted(100))
        workers = children(supervisor.pid)
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.stderr is not None
        assert f"(process {victim}) was ended by signal 9: it is started again" in supervisor.stderr.read()
        assert supervisor.wait(WAIT_S) == 0
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def test_workers_that_fail_at_once_end_the_command(kstreams: Any) -> None:
    (kstreams.folder / "broken.py").write_text("import kstreams as ks\ntopology = ks.StreamsBuilder()\nundefined\n")
    refused = subprocess.run(
        [COMMAND, "run", "broken.py", "--workers", "2"], check=False, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert "undefined" in refused.stderr


def test_runs_that_end_with_their_input_have_one_process(kstreams: Any) -> None:
    (kstreams.folder / "app.py").write_text(APP)
    refused = kstreams("run", "app.py", "--workers", "2", "--once")
    assert refused.status == 2
    assert "--threads" in refused.err

"""A process that starts on the state folder of a killed one takes its place, without waiting for its session to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.native.world import World, counted, lines, until
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RUN = """
import sys
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import word_count
streams = KafkaStreams(word_count(), {"application.id": "app", "bootstrap.servers": sys.argv[1],
    "state.dir": sys.argv[2], "commit.interval.ms": 100, "processing.guarantee": sys.argv[3]})
streams.start()
streams.wait()
"""
SESSION_S = 45


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_restart_after_a_kill_does_not_wait_for_the_session(kafka: Any, tmp_path: Path, guarantee: str) -> None:
    delete_everything(kafka.bootstrap_servers)
    world = World(tmp_path, **{"bootstrap.servers": kafka.bootstrap_servers})
    world.create("lines", 3)
    world.create("counts", 1)
    command = [sys.executable, "-c", RUN, kafka.bootstrap_servers, str(tmp_path / "state"), guarantee]
    for run in range(3):
        world.write("lines", [(key, value, time + 1) for key, value, time in lines(20, 20 * run)])
        began_s = monotonic()
        process = subprocess.Popen(command, cwd=Path(__file__).parents[3])
        try:
            until(lambda run=run: world.table("counts", value=int) == counted(20 * run + 20))
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        assert monotonic() - began_s < SESSION_S / 2

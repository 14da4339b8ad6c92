"""Queries from Kafka to Kafka with kills of drivers and of Python workers: 0 records lost, 0 twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.conftest import LITTLE_CPU
from tests.spark.running import Application, Row
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(1800)]

START = 1_600_000_000_000
TYPES = {"in": (str, int), "big": (str, int), "closed": (bytes, bytes), "changes": (bytes, bytes)}
APP = """
from tests.spark.programs.test_kills import counted

topology = counted()
config = {"application.id": "app"}
"""
ROWS, PER_BATCH, KILLS = 6_000, 500, 4


def counted() -> ks.StreamsBuilder:
    """Records without state, updates and final results: each is a query of its own."""
    builder = ks.StreamsBuilder()
    numbers = builder.stream("in", key=str, value=int)
    numbers.filter(ks.value % 3 > 0).to("big")
    seconds = numbers.group_by_key().windowed_by(ks.TimeWindows(size=10_000, grace=5_000))
    seconds.count().to_stream().to("changes")
    seconds.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream().to("closed")
    return builder


def rows() -> list[Row]:
    """Records of three partitions that are minutes apart, each a little late at times."""
    draw = random.Random(3)
    return [
        Row("in", f"key-{n % 3}-{n % 5}", n, START + n * 50 + n % 3 * 120_000 - draw.randrange(2_000), n % 3)
        for n in range(ROWS)
    ]


def start(app: Application, file: Path) -> subprocess.Popen[bytes]:
    settings = {**app.settings, **LITTLE_CPU, "spark.master": "local[2,8]", "spark.kstreams.max.records": PER_BATCH}
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    command = [sys.executable, "-m", "kstreams", "run", str(file), "--engine", "spark", "--until-end", *options]
    return subprocess.Popen(command, start_new_session=True, cwd=file.parent)


def batches(folder: Path) -> int:
    """The number of batches that queries have begun."""
    return sum(1 for file in (folder / "checkpoint").rglob("offsets/*") if file.name.isdigit())


def kill_during_a_batch(process: subprocess.Popen[bytes], folder: Path, delay: float) -> bool:
    """Kill driver, JVM and workers a moment after two more batches have begun; False if the run ended before."""
    begun = batches(folder)
    while batches(folder) < begun + 2:
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def python_workers(process: subprocess.Popen[bytes]) -> list[int]:
    """The ids of the processes of a run's group that execute Python for Spark."""
    listing = subprocess.run(["ps", "-eo", "pid,pgid,args"], capture_output=True, text=True, check=True).stdout
    fields = [line.split(None, 2) for line in listing.splitlines()[1:]]
    return [int(pid) for pid, group, args in fields if int(group) == process.pid and "worker_daemon" in args]


def test_kills_change_nothing(kafka: Any, tmp_path: Path) -> None:
    delete_everything(kafka.bootstrap_servers)
    relational = {"spark.kstreams.path": "relational", "bootstrap.servers": kafka.bootstrap_servers}
    app = Application(None, tmp_path, counted(), TYPES, **relational)
    app.create("in", partitions=3).create("big", "changes", "closed", "spark-big", "spark-changes", "spark-closed")
    app.write(rows())
    app.run_natively()
    file, draw = tmp_path / "app.py", random.Random(7)
    file.write_text(APP)
    kills = sum(kill_during_a_batch(start(app, file), tmp_path, draw.random()) for _ in range(KILLS))
    last = start(app, file)
    begun, killed = batches(tmp_path), 0
    while last.poll() is None:
        if not killed and batches(tmp_path) > begun:
            for worker in python_workers(last):
                os.kill(worker, signal.SIGKILL)
                killed += 1
        time.sleep(0.02)
    assert last.returncode == 0
    assert (kills, killed > 0) == (KILLS, True)
    for topic in ("big", "closed"):
        assert Counter(app.rows(topic)) == Counter(app.rows(topic, "")), topic
    assert app.table("changes") == app.table("changes", "")

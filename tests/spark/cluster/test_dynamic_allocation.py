"""Dynamic allocation: executors come when there is input, go when there is none, and the results are the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.cluster import DYNAMIC_ALLOCATION
from tests.faults.processes import MARK, Processes, end_all
from tests.spark.conftest import LITTLE_CPU
from tests.spark.running import Application, Row
from tests.spark.standalone import standalone
from tests.spark.word_count import word_count
from tests.support.kafka_cluster import KafkaCluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(1200)]

COUNTS = """
import kstreams as ks

topology = ks.StreamsBuilder()
lines = topology.stream("lines", key=str, value=str)
lines.group_by(ks.value.str.upper(), key=str).count().to_stream().to("counts")
config = {"application.id": "app"}
"""
SLOW_COUNTS = """
import time
import kstreams as ks

def upper(key, line):
    time.sleep(0.02)
    return line.upper()

topology = ks.StreamsBuilder()
lines = topology.stream("lines", key=str, value=str)
lines.group_by(upper, key=str).count().to_stream().to("counts")
config = {"application.id": "app"}
"""
TYPES = {"lines": (str, str), "counts": (str, int)}
PARTITIONS, WAVE = 6, 600


@contextmanager
def submitted(app: Application, source: str, master: str, settings: Mapping[str, Any], mark: str) -> Iterator[None]:
    """An application that runs on a cluster until the block ends."""
    file = app.folder / "app.py"
    file.write_text(source)
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    command = [sys.executable, "-m", "kstreams", "submit", str(file), "--master", master, *options]
    environment = {**os.environ, MARK: mark}
    with (app.folder / "driver.log").open("wb") as out:
        driver = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
    try:
        yield
        assert driver.poll() is None, (app.folder / "driver.log").read_text()[-3_000:]
    finally:
        os.killpg(driver.pid, signal.SIGTERM)
        driver.wait(60)


def await_value(present: Callable[[], Any], expected: Any, seconds: float = 240) -> None:
    """Wait until something has a value."""
    deadline = time.monotonic() + seconds
    while (value := present()) != expected:
        assert time.monotonic() < deadline, f"it is {value}, and never became {expected}"
        time.sleep(0.2)


@pytest.mark.parametrize(("path", "source"), [("task", SLOW_COUNTS), ("relational", COUNTS)])
def test_executors_come_with_the_input_and_go_without(tmp_path: Path, path: str, source: str) -> None:
    mark = str(tmp_path)

    def executors() -> int:
        return len(Processes.of(mark).executors())

    def counts() -> dict[str, int]:
        return app.table("counts")

    with KafkaCluster(nodes=3) as kafka, standalone(tmp_path, workers=3, cores=1, **{MARK: mark}) as master:
        of_kafka = {"bootstrap.servers": kafka.bootstrap_servers, "spark.kstreams.path": path}
        app = Application(None, tmp_path, word_count(), TYPES, **of_kafka)
        app.create("lines", partitions=PARTITIONS).create("spark-counts")
        size = {"spark.driver.memory": "1g", "spark.executor.memory": "700m", "spark.sql.shuffle.partitions": 12}
        with submitted(app, source, master, {**LITTLE_CPU, **DYNAMIC_ALLOCATION, **app.settings, **size}, mark):
            for wave in (1, 2):
                app.write(Row("lines", "k", "abc"[n % 3], n + 1, n % PARTITIONS) for n in range(WAVE))
                await_value(executors, 3)
                await_value(counts, dict.fromkeys("ABC", wave * WAVE // 3))
                await_value(executors, 1)
        assert len(app.rows("counts")) >= 6
    assert end_all(mark) == 0

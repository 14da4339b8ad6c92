"""From Kafka to Kafka, with kills of drivers and Python workers: what a plain consumer reads is the native result."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import LITTLE_CPU
from tests.spark.running import Application
from tests.spark.shop import INPUTS, OUTPUTS, TYPES, results, shop, shop_rows
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(1800)]

APP = """
import os
import signal
from pathlib import Path

from tests.spark.shop import shop

folder = Path(__file__).parent


def takes(key, amount):
    if amount % 100 == 77:
        try:
            (folder / f"killed-{amount}").touch(exist_ok=False)
        except FileExistsError:
            return True
        os.kill(os.getpid(), signal.SIGKILL)
    return True


topology = shop(takes)
config = {"application.id": "app"}
"""
ROWS, PER_STEP, DRIVER_KILLS = 6_000, 250, 6


def start(app: Application, file: Path) -> subprocess.Popen[bytes]:
    more = {"spark.master": "local[2,8]", "spark.kstreams.max.records": PER_STEP}
    settings = {**app.settings, **LITTLE_CPU, **more}
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    command = [sys.executable, "-m", "kstreams", "run", str(file), "--engine", "spark", "--until-end", *options]
    return subprocess.Popen(command, start_new_session=True, cwd=file.parent)


def newest(folder: Path, pattern: str) -> int:
    """The last step that has left such a file."""
    return max((int(file.name.split("-")[0]) for file in (folder / "checkpoint").rglob(pattern)), default=-1)


def kill_at(process: subprocess.Popen[bytes], folder: Path, pattern: str, step: int, delay: float) -> bool:
    """Kill driver and JVM a moment after a file of a step shows; False when the run ended before."""
    while newest(folder, pattern) < step:
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def test_kills_of_drivers_and_workers_change_nothing(kafka: Any, tmp_path: Path) -> None:
    delete_everything(kafka.bootstrap_servers)
    app = Application(None, tmp_path, shop(), TYPES, **{"bootstrap.servers": kafka.bootstrap_servers})
    app.create(*INPUTS, partitions=3).create(*OUTPUTS).write(shop_rows(3, ROWS))
    app.run_natively()
    file, draw = tmp_path / "app.py", random.Random(5)
    file.write_text(APP)
    for number in range(DRIVER_KILLS):
        # While rows are staged, or when a step is announced: about its commit, and while its rows are published.
        pattern = ("*.rows", "*.json")[number % 2]
        step = newest(tmp_path, "outputs/*.json") + draw.choice([2, 4])
        assert kill_at(start(app, file), tmp_path, f"outputs/{pattern}", step, draw.random() * 0.2)
    assert start(app, file).wait() == 0
    assert len(list(tmp_path.glob("killed-*"))) == 10
    found = results(app)
    assert all(found.values())
    assert found == results(app, "")

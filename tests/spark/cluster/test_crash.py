"""A driver that is killed at any moment goes on as if nothing had happened: every step counts once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.log import verify
from tests.spark.conftest import LITTLE_CPU
from tests.spark.running import Application, Row

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

APP = """
import kstreams as ks

topology = ks.StreamsBuilder()
orders = topology.stream("in", key=str, value=int)
orders.group_by(lambda key, value: f"{key}-{value % 3}", key=str).count().to_stream().to("counts")
windows = orders.group_by_key().windowed_by(ks.TimeWindows(size=100, grace=0))
final = windows.reduce(lambda a, b: a + b).suppress(ks.Suppressed.until_window_closes())
final.to_stream(lambda key, total: f"{key.key}@{key.window.start_ms}").to("sums", key=str, value=int)
config = {"application.id": "app"}
"""
TYPES = {"in": (str, int), "counts": (str, int), "sums": (str, int)}
ROWS = [Row("in", f"k{i % 7}", i, i) for i in range(2000)]
KILLS = 10
PER_STEP = 80


def start(app: Application, file: Path) -> subprocess.Popen[bytes]:
    settings = {**app.settings, **LITTLE_CPU, "spark.kstreams.max.records": PER_STEP}
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    command = [sys.executable, "-m", "kstreams", "run", str(file), "--engine", "spark", "--until-end", *options]
    return subprocess.Popen(command, start_new_session=True, cwd=file.parent)


def newest_step(folder: Path) -> int:
    """The last step of which a task has written its state: often one that the log has not committed."""
    names = [file.name for file in (folder / "checkpoint").rglob("*.changes")]
    return max((int(re.match(r"\d+", name)[0]) for name in names), default=-1)


def kill_at(process: subprocess.Popen[bytes], folder: Path, step: int) -> bool:
    """Kill driver and JVM as soon as the state of a step shows; False when the run ended before."""
    while newest_step(folder) < step:
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def test_ten_kills_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(APP)
    topology = ks.StreamsBuilder()
    app = Application(None, tmp_path, topology, TYPES).create("in").write(ROWS)
    killed = 0
    for step in range(2, 2 + 4 * KILLS, 4):
        killed += kill_at(start(app, file), tmp_path, step)
    assert killed == KILLS
    assert start(app, file).wait() == 0

    sums: dict[str, int] = {}
    for row in ROWS:
        window = f"{row.key}@{row.timestamp // 100 * 100}"
        sums[window] = sums.get(window, 0) + row.value
    rows = app.rows("sums")
    assert {key: value for key, value, _ in rows} == sums
    assert len(rows) == len(sums), "a final result came twice"
    counts = app.rows("counts")
    assert sorted(counts)[-1][1] <= len(ROWS)
    groups = {f"k{i % 7}-{i % 3}": 0 for i in range(21)}
    for i in range(len(ROWS)):
        groups[f"k{i % 7}-{i % 3}"] += 1
    assert app.table("counts") == groups
    assert list(verify(tmp_path / "log")) == []

"""The flights job killed at random moments, on either engine: its final tables are those of an undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kstreams.log import open_log, verify

ROOT = Path(__file__).parents[2]
FLIGHTS = ROOT / "examples" / "flights"
COMMAND = [str(Path(sys.executable).with_name("kstreams")), "run", str(FLIGHTS / "app.py"), "--until-end"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "KSTREAMS_LOG_DIR": str(folder / "log"), "KSTREAMS_STATE_DIR": str(folder / "state")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the loaded topics, and beside it the results of one native run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("flights")
    subprocess.run([sys.executable, FLIGHTS / "load.py"], env=environment(folder), check=True)
    shutil.copytree(folder / "log", folder / "loaded")
    subprocess.run(COMMAND, env=environment(folder), cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(
    ("engine", "kills", "longest"),
    [("native", 20, 4.0), pytest.param("spark", 10, 40.0, marks=pytest.mark.spark)],
)
def test_final_tables_are_those_of_an_undisturbed_run(
    undisturbed: Path, tmp_path: Path, engine: str, kills: int, longest: float
) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    shutil.copytree(undisturbed / "loaded", tmp_path / "log")
    hit = run_and_kill([*COMMAND, "--engine", engine], tmp_path, kills, longest, random.Random(seed))
    print(f"{hit} of {kills} kills hit")
    prefix = "spark-" if engine == "spark" else ""
    assert tables(tmp_path, prefix) == tables(undisturbed, "")
    assert verify(tmp_path / "log") == []


def run_and_kill(command: list[str], folder: Path, kills: int, longest: float, moments: random.Random) -> int:
    """Run until it ends by itself; the first `kills` runs are killed after at most `longest` seconds."""
    for attempt in range(kills + 1):
        process = subprocess.Popen(command, env=environment(folder), cwd=folder, start_new_session=True)
        try:
            assert process.wait(moments.uniform(0.3, longest) if attempt < kills else 1800) == 0
            return attempt
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    raise AssertionError(f"the run that nobody killed did not end: {command}")


def tables(folder: Path, prefix: str) -> dict[str, list[Any]]:
    """The example's results, as it reads them itself."""
    sys.path.insert(0, str(FLIGHTS))
    try:
        from results import RESULTS, final_table
    finally:
        sys.path.remove(str(FLIGHTS))
    log = open_log(folder / "log")
    return {result.topic: final_table(log, result, prefix) for result in RESULTS}

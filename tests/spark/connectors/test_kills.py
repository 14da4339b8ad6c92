"""The driver is killed at random moments: the targets have what the native engine writes, each row once."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from deltalake import DeltaTable

pytestmark = [pytest.mark.spark, pytest.mark.slow]

APP = """
import msgspec
import kstreams as ks

class Trade(msgspec.Struct):
    symbol: str
    at: int
    size: int

class Total(msgspec.Struct):
    symbol: str
    size: int

topology = ks.StreamsBuilder()
trades = topology.stream(ks.sources.csv("../in/*.csv", Trade, key="symbol", timestamp="at", tasks=1), name="trades")
counts = trades.group_by_key().windowed_by(ks.TimeWindows(size=60_000, grace=60_000)).count()
counts.suppress(ks.Suppressed.until_window_closes()).to_stream().map(
    lambda window, count: (window.key, Total(window.key, count)), key=str, value=Total
).to(ks.sinks.delta("counts"), name="counts")
totals = trades.group_by_key().aggregate(
    lambda: 0, lambda symbol, trade, total: total + trade.size, value=int
).to_stream().map_values(lambda symbol, total: Total(symbol, total), value=Total, with_key=True)
totals.to(ks.sinks.sql("sqlite:///totals.db", "totals", mode="upsert", key="symbol"), name="totals")
large = trades.filter(ks.col("size") >= 90)
large.to(ks.sinks.sql("sqlite:///large.db", "large", mode="insert"), name="large")
config = {
    "application.id": "trades",
    "spark.kstreams.delta": "none",
    "spark.kstreams.max.records": 4_000,
    "spark.driver.memory": "1g",
}
"""
FILES = 8
ROWS = 5_000


def write_trades(folder: Path) -> None:
    folder.mkdir()
    for file in range(FILES):
        begin = file * ROWS
        lines = (f"s{number % 17},{number * 20},{number % 100}" for number in range(begin, begin + ROWS))
        (folder / f"{file}.csv").write_text("\n".join(["symbol,at,size", *lines]) + "\n")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    (folder / "app.py").write_text(APP)
    paths = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "kstreams", "run", "app.py", "--until-end", *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def tables(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of all targets, read by other libraries."""
    counts = DeltaTable(str(folder / "counts")).to_pyarrow_table().select(["symbol", "size"]).to_pylist()
    rows: dict[str, list[tuple[object, ...]]] = {"counts": sorted((row["symbol"], row["size"]) for row in counts)}
    for name in ("totals", "large"):
        with closing(sqlite3.connect(folder / f"{name}.db")) as database:
            rows[name] = sorted(database.execute(f"SELECT * FROM {name}").fetchall())
    return rows


@pytest.mark.parametrize("place", ["driver", "executors"])
def test_targets_are_exact_after_kills_of_the_driver(tmp_path: Path, place: str) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draw = random.Random(seed)
    write_trades(tmp_path / "in")
    natively = start(tmp_path / "native")
    assert natively.wait(300) == 0, natively.stdout and natively.stdout.read()
    on_spark = ("--engine", "spark", "-c", f"spark.kstreams.connectors={place}")
    kills = 0
    for _ in range(3):
        driver = start(tmp_path / "spark", *on_spark)
        wait_for_records(tmp_path / "spark", driver)
        time.sleep(draw.uniform(0, 6))
        kills += driver.poll() is None
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(60)
    last = start(tmp_path / "spark", *on_spark)
    assert last.wait(300) == 0, last.stdout and last.stdout.read()
    assert kills > 0
    expected = tables(tmp_path / "native")
    assert len(expected["large"]) == FILES * ROWS // 10
    assert tables(tmp_path / "spark") == expected


def wait_for_records(folder: Path, driver: subprocess.Popen[str]) -> None:
    """Wait until the source writes to its topic."""
    topic = folder / ".kstreams" / "log"
    deadline = time.monotonic() + 120
    while not list(topic.rglob("*spark-trades-trades-feed*")) and driver.poll() is None:
        assert time.monotonic() < deadline, "the driver did not start"
        time.sleep(0.1)

"""A process that writes trades to a sink, and `kill_and_restart`, which kills it at random moments.

`python -m tests.connectors.lake.killed KIND FOLDER ROWS STEP` prints `ready`, goes on where the target is, and ends
when the target has all rows of two partitions, which two threads write.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kstreams as ks
from kstreams.connectors import Sink
from tests.connectors.lake.driving import fill

KEYS = 500
PARTITIONS = 2


def catalog_in(folder: Path) -> dict[str, str]:
    """The properties of an Iceberg catalogue in a folder."""
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


SINKS: dict[str, Callable[[Path], Sink]] = {
    "files": lambda folder: ks.sinks.files(folder / "out", partition_by="sym", roll_rows=70),
    "iceberg append": lambda folder: ks.sinks.iceberg(catalog_in(folder), "db.trades"),
    "iceberg upsert": lambda folder: ks.sinks.iceberg(catalog_in(folder), "db.trades", mode="upsert", key="key"),
    "delta append": lambda folder: ks.sinks.delta(folder / "table"),
    "delta upsert": lambda folder: ks.sinks.delta(folder / "table", mode="upsert", key=("id", "part")),
}


def kill_and_restart(kind: str, folder: Path, *, rows: int, step: int, kills: int, longest_s: float) -> None:
    """Let the process write all rows, and kill it on the way. The seed is printed for a failed test."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    command = [sys.executable, "-m", "tests.connectors.lake.killed", kind, str(folder), str(rows), str(step)]
    for number in range(kills + 1):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if number < kills:
            time.sleep(moments.uniform(0, longest_s))
            process.kill()
        assert process.wait(600) == (0 if number == kills else -9), "it had ended before: write more rows"
        process.stdout.close()


def main(kind: str, folder: str, rows: str, step: str) -> None:
    sink = SINKS[kind](Path(folder))
    print("ready", flush=True)
    with ThreadPoolExecutor(PARTITIONS) as threads:
        parts = [
            threads.submit(fill, sink, int(rows), int(step), keys=KEYS, partition=partition)
            for partition in range(PARTITIONS)
        ]
        for part in parts:
            part.result()


if __name__ == "__main__":
    main(*sys.argv[1:])

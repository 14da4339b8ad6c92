"""How fast the embedded log writes and reads, in rows a second on one core: `python benchmarks/log.py [folder]`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import EmbeddedLog, open_log

ROWS, BATCHES, SENDS = 10_000, 300, 300_000
SOURCE = TopicPartition("rows", 0)


def run(folder: str | None = None) -> dict[str, float]:
    """Rows a second of every measurement; the best of three, over data of 67 bytes a row.

    The files are written twice: the first time a virtual machine finds memory for its page cache, which measures
    the machine.
    """
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        figures: dict[str, float] = {}
        for compression in ("none", "lz4", "zstd"):
            figures[f"write {compression}"] = _best(lambda c=compression: _write(root / "w", c))
            figures[f"read {compression}"] = _best(lambda: _read(root / "w"))
        figures["send single records"] = _best(lambda: _send(root / "s"))
        figures["send to 4 partitions"] = _best(lambda: _send(root / "s", 4))
        figures["consume to rows"] = _best(lambda: _consume_rows(root / "s"))
        return figures
    finally:
        shutil.rmtree(root)


def _best(measure: Callable[[], float]) -> float:
    return max(measure() for _ in range(3))


def _batch() -> Batch:
    keys = pa.array([b"k%06d" % i for i in range(ROWS)], pa.binary())
    values = pa.array([os.urandom(26).hex().encode() for _ in range(ROWS)], pa.binary())
    return Batch(SOURCE, np.arange(ROWS), keys, values, pa.array(np.arange(ROWS)))


def _fresh(folder: Path, partitions: int) -> EmbeddedLog:
    shutil.rmtree(folder, ignore_errors=True)
    log = open_log(folder)
    log.admin().create_topic("rows", partitions)
    return log


def _write(folder: Path, compression: str) -> float:
    batch = _batch()
    with _fresh(folder, 1) as log, log.producer({"compression.type": compression}) as producer:
        start = time.perf_counter()
        for _ in range(BATCHES):
            producer.send_batch(batch)
        producer.flush()
        return BATCHES * ROWS / (time.perf_counter() - start)


def _read(folder: Path) -> float:
    rows = 0
    with open_log(folder) as log, log.consumer() as consumer:
        consumer.assign([SOURCE])
        start = time.perf_counter()
        while batches := consumer.poll():
            rows += sum(map(len, batches))
        return rows / (time.perf_counter() - start)


def _send(folder: Path, partitions: int = 1) -> float:
    value = b"x" * 52
    with _fresh(folder, partitions) as log, log.producer() as producer:
        start = time.perf_counter()
        for i in range(SENDS):
            producer.send("rows", b"k%06d" % (i % 1000), value)
        producer.flush()
        return SENDS / (time.perf_counter() - start)


def _consume_rows(folder: Path) -> float:
    rows = 0
    with open_log(folder) as log, log.consumer() as consumer:
        consumer.assign([TopicPartition("rows", partition) for partition in range(4)])
        start = time.perf_counter()
        while batches := consumer.poll():
            rows += sum(1 for batch in batches for _ in batch.rows())
        return rows / (time.perf_counter() - start)


if __name__ == "__main__":
    for name, rows_per_second in run(*sys.argv[1:]).items():
        print(f"{name:24} {rows_per_second / 1e6:8.2f} M rows/s")

"""One application on the native runtime over an embedded log in a temporary folder, until its last commit."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.config import Config
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import open_log
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.engine import run

BATCH = 50_000


def write(folder: Path, topic: str, keys: pa.Array, values: pa.Array, timestamps: np.ndarray[Any, Any]) -> None:
    """Write a topic of one partition; keys and values are binary."""
    with open_log(folder) as log, log.admin() as admin, log.producer() as producer:
        admin.create_topic(topic, 1)
        for start in range(0, len(keys), BATCH):
            part = slice(start, start + BATCH)
            columns = (column[part] for column in (keys, values, pa.array(timestamps)))
            offsets = np.arange(len(keys[part]))
            producer.send_batch(Batch(TopicPartition(topic, 0), offsets, *columns))


class Spent(NamedTuple):
    """Seconds that a run took: of CPU in all its threads, and by the clock."""

    cpu: float
    wall: float


def rate(topology: Topology, log: Path, count: int, **settings: Any) -> float:
    """Records a second of CPU time of a whole application: it reads, keeps state, writes, commits.

    Parameters
    ----------
    topology : Topology
        Reads a topic of `log`.
    log : Path
        The folder of an embedded log; each run starts with a copy and an empty state.
    count : int
        How many records the topic holds.
    settings
        Of the configuration, with underscores.
    """
    return count / spent(topology, log, **settings).cpu


def spent(topology: Topology, log: Path, **settings: Any) -> Spent:
    """What the same costs."""
    logging.getLogger("kstreams").setLevel(logging.ERROR)
    folder = Path(tempfile.mkdtemp(dir=log.parent))
    try:
        shutil.copytree(log, folder / "log")
        config = Config.of(
            {"log.dir": str(folder / "log"), "state.dir": str(folder / "state"), "application.id": "bench"}, **settings
        )
        cpu, wall = process_time(), perf_counter()
        run(topology, config, until_end=True)
        return Spent(process_time() - cpu, perf_counter() - wall)
    finally:
        shutil.rmtree(folder)

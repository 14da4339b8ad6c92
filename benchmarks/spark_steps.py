"""What the benchmarks of Spark share: topics that are written in bulk, and the steps of a run with their times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from kstreams.log import open_log
from kstreams.log.partitioning import partitions_of, split_by_partition

AT_ONCE = 50_000
"""Rows of a piece that is written."""


def slices(count: int, size: int) -> Iterator[slice]:
    """Pieces of so many rows."""
    return (slice(start, start + size) for start in range(0, count, size))


def write_topic(
    producer: Any, topic: str, partitions: int, keys: pa.Array, values: pa.Array, times: np.ndarray[Any, Any]
) -> None:
    """Append rows to a topic, each to the partition of its key."""
    chosen = partitions_of(keys, partitions)
    for part in slices(len(chosen), AT_ONCE):
        columns = keys[part], values[part], pa.array(times[part])
        for batch, _ in split_by_partition(topic, chosen[part], *columns, None):
            producer.send_batch(batch)


def steps_of(session: Any, topology: ks.Topology, folder: Path, name: str, **settings: Any) -> list[tuple[int, float]]:
    """Records and seconds of each step of a run that ends with its input, `folder/log`."""
    from kstreams.config import Config
    from kstreams.kernel.clock import SystemClock
    from kstreams.runtime.spark.runner import SparkRunner

    config = {
        "application.id": f"bench-{name}",
        "log.dir": str(folder / "log"),
        "spark.kstreams.checkpoint": str(folder / "checkpoint"),
        "spark.kstreams.delta": "none",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    seen = [(0, time.perf_counter())]
    with open_log(folder / "log") as home:
        noted = SystemClock(), lambda progress: seen.append((progress.records_in, time.perf_counter()))
        SparkRunner(topology, Config.of(config), session, home, *noted).run(once=True)
    return [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(seen)]


def worker_memory() -> float:
    """Most memory that one Python worker of Spark has taken so far, in MB: resident, what it shares with others too."""
    found = [0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            is_worker = b"worker_daemon" in (status.parent / "cmdline").read_bytes()
            lines = status.read_text().splitlines() if is_worker else []
        except OSError:
            continue  # it has ended
        found += [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return max(found) / 1024


def triggers_of(results: Any, mode: str, checkpoint: str) -> list[tuple[int, float]]:
    """Records and seconds of each trigger of a query whose results go nowhere."""
    writer = results.writeStream.outputMode(mode).format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    triggers = [(p["numInputRows"], p["durationMs"]["triggerExecution"] / 1000) for p in query.recentProgress]
    return [trigger for trigger in triggers if trigger[0]]


def rate(triggers: list[tuple[int, float]], warm_up: int) -> float:
    """Records a second: the median, without the first triggers, in which plans are compiled and workers start."""
    return statistics.median(rows / seconds for rows, seconds in triggers[warm_up:])

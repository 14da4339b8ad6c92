"""A windowed count on Spark: our tasks beside Spark's own operator, over the same topic, trigger by trigger.

Both read the embedded log; Spark's own throws its result away, ours writes it to a topic. The first triggers, in which
plans are compiled and workers start, do not count.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from kstreams.log import open_log
from kstreams.log.partitioning import partitions_of, split_by_partition

ROWS, KEYS, PER_TRIGGER, WARM_UP = 3_000_000, 10_000, 300_000, 3
WINDOW_MS, PARTITIONS, AT_ONCE = 10_000, 2, 50_000


def run() -> dict[str, float]:
    """Records a second within a trigger, and how ours compares (a ratio)."""
    from kstreams.runtime.spark.cluster.session import spark_session
    from kstreams.runtime.spark.settings import SparkSettings

    session = spark_session(SparkSettings(delta=None))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        _write(log)
        own = _spark_own(session, log, Path(folder, "own"))
        tasks = _kstreams(session, log, Path(folder, "tasks"), "task")
        relational = _kstreams(session, log, Path(folder, "relational"), "relational")
    return {
        "windowed count: Spark's own": own,
        "windowed count: task path": tasks,
        "windowed count: relational path": relational,
        "task path to Spark's own (ratio)": tasks / own,
    }


def _write(log: Path) -> None:
    random = np.random.default_rng(7)
    keys = pa.array([f"key-{i}" for i in range(KEYS)], pa.binary()).take(pa.array(random.integers(0, KEYS, ROWS)))
    chosen, times = partitions_of(keys, PARTITIONS), pa.array(np.arange(ROWS) // 10)
    with open_log(log) as home, home.admin() as admin, home.producer() as producer:
        admin.create_topic("in", PARTITIONS)
        for start in range(0, ROWS, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            for batch, _ in split_by_partition("in", chosen[part], keys[part], keys[part], times[part], None):
                producer.send_batch(batch)


def _spark_own(session: Any, log: Path, checkpoint: Path) -> float:
    from pyspark.sql import functions as F

    from kstreams.runtime.spark.io.source import read_stream, register

    register(session)
    rows = read_stream(session, log, ["in"], PER_TRIGGER, {}).withColumn("time", F.timestamp_millis("timestamp"))
    windows = rows.withWatermark("time", "10 seconds").groupBy(F.window("time", "10 seconds"), "key").count()
    writer = windows.writeStream.outputMode("update").format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    triggers = [(p["numInputRows"], p["durationMs"]["triggerExecution"] / 1000) for p in query.recentProgress]
    return _rate([trigger for trigger in triggers if trigger[0]])


def _kstreams(session: Any, log: Path, checkpoint: Path, path: str) -> float:
    from kstreams.clock import SystemClock
    from kstreams.config import Config
    from kstreams.runtime.spark.runner import SparkRunner

    settings = {
        "application.id": f"bench-{path}",
        "log.dir": str(log),
        "spark.kstreams.checkpoint": str(checkpoint),
        "spark.kstreams.delta": "none",
        "spark.kstreams.path": path,
        "spark.kstreams.max.records": PER_TRIGGER,
    }
    steps = [(0, time.perf_counter())]
    with open_log(log) as home:
        runner = SparkRunner(
            _topology(path),
            Config.of(settings),
            session,
            home,
            SystemClock(),
            lambda progress: steps.append((progress.records_in, time.perf_counter())),
        )
        runner.run(once=True)
    return _rate([(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(steps)])


def _topology(path: str) -> ks.Topology:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=WINDOW_MS, grace=10_000)
    grouped = builder.stream("in", key=str, value=bytes).group_by_key().windowed_by(windows)
    final = path == "relational"
    counted = (grouped.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE) if final else grouped).count()
    counted.to_stream(lambda key, count: key.key).to("out", key=str)
    return builder.build()


def _rate(triggers: list[tuple[int, float]]) -> float:
    return statistics.median(rows / seconds for rows, seconds in triggers[WARM_UP:])

"""A windowed count on Spark: our tasks beside Spark's own operator, over the same topic, trigger by trigger.

Both read the embedded log; Spark's own throws its result away, ours writes it to a topic. The first triggers, in which
plans are compiled and workers start, do not count.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks.spark_steps import rate, steps_of, triggers_of, write_topic
from kstreams.log import open_log

ROWS, KEYS, PER_TRIGGER, WARM_UP = 3_000_000, 10_000, 300_000, 3
WINDOW_MS, PARTITIONS = 10_000, 2


def run() -> dict[str, float]:
    """Records a second within a trigger, and how ours compares (a ratio)."""
    from kstreams.runtime.spark.cluster.session import spark_session
    from kstreams.runtime.spark.settings import SparkSettings

    session = spark_session(SparkSettings(delta=None))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        _write(log)
        own = _spark_own(session, log, Path(folder, "own"))
        tasks = _kstreams(session, Path(folder), "task")
        relational = _kstreams(session, Path(folder), "relational")
    return {
        "windowed count: Spark's own": own,
        "windowed count: task path": tasks,
        "windowed count: relational path": relational,
        "task path to Spark's own (ratio)": tasks / own,
    }


def _write(log: Path) -> None:
    random = np.random.default_rng(7)
    keys = pa.array([f"key-{i}" for i in range(KEYS)], pa.binary()).take(pa.array(random.integers(0, KEYS, ROWS)))
    with open_log(log) as home, home.admin() as admin, home.producer() as producer:
        admin.create_topic("in", PARTITIONS)
        write_topic(producer, "in", PARTITIONS, keys, keys, np.arange(ROWS) // 10)


def _spark_own(session: Any, log: Path, checkpoint: Path) -> float:
    from pyspark.sql import functions as F

    from kstreams.runtime.spark.io.source import read_stream, register

    register(session)
    rows = read_stream(session, log, ["in"], PER_TRIGGER, {}).withColumn("time", F.timestamp_millis("timestamp"))
    windows = rows.withWatermark("time", "10 seconds").groupBy(F.window("time", "10 seconds"), "key").count()
    return rate(triggers_of(windows, "update", str(checkpoint)), WARM_UP)


def _kstreams(session: Any, folder: Path, path: str) -> float:
    limits = {"spark_kstreams_path": path, "spark_kstreams_max_records": PER_TRIGGER}
    return rate(steps_of(session, _topology(path), folder, path, **limits), WARM_UP)


def _topology(path: str) -> ks.Topology:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=WINDOW_MS, grace=10_000)
    grouped = builder.stream("in", key=str, value=bytes).group_by_key().windowed_by(windows)
    final = path == "relational"
    counted = (grouped.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE) if final else grouped).count()
    counted.to_stream(lambda key, count: key.key).to("out", key=str)
    return builder.build()

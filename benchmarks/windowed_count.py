"""Tumbling counts of a minute with state in RocksDB, changelog and commits: few keys, many keys, two ways to say it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import baseline, job

MINUTE_MS = 60_000
FEW = {"keys": 1_000, "rows": 5_000_000}
MANY = {"keys": 1_000_000, "rows": 1_000_000}


def run() -> dict[str, float]:
    """Records a second for a thousand and for a million keys."""
    figures: dict[str, float] = {}
    for case, size in {"1,000 keys": FEW, "1,000,000 keys": MANY}.items():
        keys, timestamps = _data(**size)
        names, times = keys.to_pylist(), timestamps.tolist()
        counted = baseline.rate(len(names), lambda n=names, t=times: baseline.windowed_count(n, t, MINUTE_MS))
        figures[f"{case}: plain loop"] = counted
        del names, times
        with tempfile.TemporaryDirectory() as folder:
            log, count = Path(folder) / "log", len(keys)
            raw = keys.cast(pa.binary())
            job.write(log, "in", raw, raw, timestamps)
            figures[f"{case}: count"] = job.rate(_count(), log, count)
            figures[f"{case}: aggregate by expression"] = job.rate(_by_expression(), log, count)
            figures[f"{case}: count, record by record"] = job.rate(_count(), log, count, columns_min_rows=10**9)
            figures[f"{case}: Python aggregator"] = job.rate(_by_function(), log, count)
    return figures


def _data(keys: int, rows: int) -> tuple[pa.Array, np.ndarray[Any, Any]]:
    random = np.random.default_rng(7)
    names = pa.array([f"key-{number}" for number in range(keys)])
    # Ten minutes of event time for few keys, one for many, up to two seconds out of order.
    minutes = 10 if keys < rows // 100 else 1
    times = np.arange(rows) * (minutes * MINUTE_MS) // rows
    return names.take(pa.array(random.integers(0, keys, rows))), np.maximum(times - random.integers(0, 2_000, rows), 0)


def _windowed() -> tuple[ks.StreamsBuilder, Any]:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=MINUTE_MS, grace=10_000)
    return builder, builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)


def _written(builder: ks.StreamsBuilder, table: Any) -> ks.Topology:
    table.to_stream(lambda key, value: key.key).to("out", key=str)
    return builder.build()


def _count() -> ks.Topology:
    builder, windowed = _windowed()
    return _written(builder, windowed.count())


def _by_expression() -> ks.Topology:
    builder, windowed = _windowed()
    return _written(builder, windowed.aggregate(count=ks.len(), last=ks.timestamp.max()))


def _by_function() -> ks.Topology:
    builder, windowed = _windowed()
    return _written(builder, windowed.aggregate(lambda: 0, lambda key, value, count: count + 1, value=int))

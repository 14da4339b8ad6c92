"""Counts over sliding windows: every record falls into the windows of all records of its key around it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import baseline, job

KEYS, ROWS, STEP_MS = 10_000, 200_000, 10
DIFFERENCES_MS = {"one record a window": 10_000, "four records a window": 400_000}


def run() -> dict[str, float]:
    """Records a second, for windows that hold about one and about four records."""
    random = np.random.default_rng(7)
    keys = pa.array([f"key-{number}" for number in random.integers(0, KEYS, ROWS)])
    # Up to two seconds out of order.
    timestamps = np.maximum(np.arange(ROWS) * STEP_MS - random.integers(0, 2_000, ROWS), 0)
    names, times = keys.to_pylist(), timestamps.tolist()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        log, raw = Path(folder) / "log", keys.cast(pa.binary())
        job.write(log, "in", raw, raw, timestamps)
        for case, difference_ms in DIFFERENCES_MS.items():
            windows = ks.SlidingWindows(difference=difference_ms, grace=10_000)
            figures[f"{case}: plain loop"] = baseline.rate(ROWS, lambda d=difference_ms: _loop(names, times, d))
            figures[f"{case}: count"] = job.rate(_counted(windows), log, ROWS)
            on_close = _counted(windows, ks.EmitStrategy.ON_WINDOW_CLOSE)
            figures[f"{case}: count, emitted on close"] = job.rate(on_close, log, ROWS)
    return figures


def _loop(names: list[str], times: list[int], difference_ms: int) -> int:
    """For every record, how many of its key lie before it within the difference: half of what the windows tell."""
    seen: dict[str, list[int]] = {}
    total = 0
    for name, time in zip(names, times, strict=True):
        held = seen.setdefault(name, [])
        held[:] = [earlier for earlier in held if earlier >= time - difference_ms]
        held.append(time)
        total += len(held)
    return total


def _counted(windows: Any, emit: ks.EmitStrategy = ks.EmitStrategy.ON_WINDOW_UPDATE) -> ks.Topology:
    builder = ks.StreamsBuilder()
    windowed = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)
    table = windowed.emit_strategy(emit).count()
    table.to_stream(lambda key, value: key.key).to("out", key=str)
    return builder.build()

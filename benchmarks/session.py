"""Counts over sessions: with long ones that grow record by record, and with short ones that hold a few."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import baseline, job

KEYS, ROWS, STEP_MS = 10_000, 500_000, 10
GAPS_MS = {"long sessions": 600_000, "short sessions": 30_000}


def run() -> dict[str, float]:
    """Records a second, for sessions of all records of a key and for sessions of about one."""
    random = np.random.default_rng(7)
    keys = pa.array([f"key-{number}" for number in random.integers(0, KEYS, ROWS)])
    # Up to two seconds out of order.
    timestamps = np.maximum(np.arange(ROWS) * STEP_MS - random.integers(0, 2_000, ROWS), 0)
    names, times = keys.to_pylist(), timestamps.tolist()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        log, raw = Path(folder) / "log", keys.cast(pa.binary())
        job.write(log, "in", raw, raw, timestamps)
        for case, gap_ms in GAPS_MS.items():
            windows = ks.SessionWindows(gap=gap_ms, grace=10_000)
            figures[f"{case}: plain loop"] = baseline.rate(ROWS, lambda g=gap_ms: _loop(names, times, g))
            figures[f"{case}: count"] = job.rate(_counted(windows), log, ROWS)
            on_close = _counted(windows, ks.EmitStrategy.ON_WINDOW_CLOSE)
            figures[f"{case}: count, emitted on close"] = job.rate(on_close, log, ROWS)
    return figures


def _loop(names: list[str], times: list[int], gap_ms: int) -> int:
    """The current session of every key, as if all records came in order."""
    current: dict[str, tuple[int, int]] = {}
    closed = 0
    for name, time in zip(names, times, strict=True):
        end, count = current.get(name, (time, 0))
        if time - end > gap_ms:
            closed += 1
            count = 0
        current[name] = max(end, time), count + 1
    return closed + len(current)


def _counted(windows: Any, emit: ks.EmitStrategy = ks.EmitStrategy.ON_WINDOW_UPDATE) -> ks.Topology:
    builder = ks.StreamsBuilder()
    windowed = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows)
    table = windowed.emit_strategy(emit).count()
    table.to_stream(lambda key, value: key.key).to("out", key=str)
    return builder.build()

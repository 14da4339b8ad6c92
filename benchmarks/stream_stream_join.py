"""Windowed join of two streams: clicks with the searches of the same user within five seconds before."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import baseline, job

RECORDS, USERS, WINDOW_MS = 200_000, 5_000, 5_000
"""Of each stream; a user has one a second of event time on average."""


def run() -> dict[str, float]:
    """Records of both streams a second."""
    random = np.random.default_rng(7)
    users = [[f"user-{n}" for n in random.integers(0, USERS, RECORDS).tolist()] for _ in range(2)]
    times = np.arange(RECORDS) * 1_000 // USERS
    figures = {"plain loop": baseline.rate(2 * RECORDS, lambda: _plain(*users, times.tolist()))}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        for topic, names in zip(("searches", "clicks"), users, strict=True):
            column = pa.array(names).cast(pa.binary())
            job.write(log, topic, column, column, times)
        for kind in ("join", "left_join"):
            figures[kind] = job.rate(_topology(kind), log, 2 * RECORDS)
    return figures


def _plain(searchers: Sequence[str], clickers: Sequence[str], times: Sequence[int]) -> list[tuple[str, int, int]]:
    kept: dict[str, list[int]] = defaultdict(list)
    found = []
    for searcher, clicker, time in zip(searchers, clickers, times, strict=True):
        kept[searcher].append(time)
        found += [(clicker, other, time) for other in kept[clicker] if other >= time - WINDOW_MS]
    return found


def _topology(kind: str) -> ks.Topology:
    builder = ks.StreamsBuilder()
    searches, clicks = (builder.stream(topic, key=str, value=str) for topic in ("searches", "clicks"))
    windows = ks.JoinWindows(before=WINDOW_MS, after=0, grace=1_000)
    joined = getattr(clicks, kind)(searches, lambda click, search: click, windows=windows)
    joined.to("out", value=str)
    return builder.build()

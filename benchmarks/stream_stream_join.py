"""Joins of two streams: clicks with searches of the same user within five seconds, and orders with their payments."""

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
        # Each pair is in 2.5 s before or after: as many pairs as in five seconds before.
        figures["join by retention"] = job.rate(_by_retention(WINDOW_MS // 2), log, 2 * RECORDS)
        numbers = pa.array([f"order-{n}" for n in range(RECORDS)]).cast(pa.binary())
        for topic, order in (("searches", np.arange(RECORDS)), ("clicks", random.permutation(RECORDS))):
            job.write(Path(folder) / "orders", topic, numbers.take(pa.array(order)), numbers, times)
        figures["join for ever, a partner for each"] = job.rate(
            _by_retention(None), Path(folder) / "orders", 2 * RECORDS
        )
    return figures


def _plain(searchers: Sequence[str], clickers: Sequence[str], times: Sequence[int]) -> list[tuple[str, int, int]]:
    kept: dict[str, list[int]] = defaultdict(list)
    found = []
    for searcher, clicker, time in zip(searchers, clickers, times, strict=True):
        kept[searcher].append(time)
        found += [(clicker, other, time) for other in kept[clicker] if other >= time - WINDOW_MS]
    return found


def _by_retention(retain: int | None) -> ks.Topology:
    builder = ks.StreamsBuilder()
    searches, clicks = _sides(builder)
    clicks.join(searches, lambda click, search: click, retain=retain).to("out", value=str)
    return builder.build()


def _sides(builder: ks.StreamsBuilder) -> list[ks.KStream[str, str]]:
    return [builder.stream(topic, key=str, value=str) for topic in ("searches", "clicks")]


def _topology(kind: str) -> ks.Topology:
    builder = ks.StreamsBuilder()
    searches, clicks = _sides(builder)
    windows = ks.JoinWindows(before=WINDOW_MS, after=0, grace=1_000)
    joined = getattr(clicks, kind)(searches, lambda click, search: click, windows=windows)
    joined.to("out", value=str)
    return builder.build()

"""Aggregate of a table by another key: every update takes the old row from its group and adds the new one to its."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import baseline, job

UPDATES, USERS, CITIES = 300_000, 50_000, 1_000


def run() -> dict[str, float]:
    """Updates a second: users who move from city to city."""
    random = np.random.default_rng(7)
    users = [f"user-{number}" for number in random.integers(0, USERS, UPDATES).tolist()]
    cities = [f"city-{number}" for number in random.integers(0, CITIES, UPDATES).tolist()]
    figures = {"plain loop": baseline.rate(UPDATES, lambda: _plain(users, cities))}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        job.write(log, "users", _column(users), _column(cities), np.arange(UPDATES))
        figures["count by city"] = job.rate(_count(), log, UPDATES)
        figures["count by city, every update told"] = job.rate(_count(), log, UPDATES, statestore_cache_max_bytes=0)
    return figures


def _column(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts).cast(pa.binary())


def _plain(users: Sequence[str], cities: Sequence[str]) -> Counter[str]:
    home: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for user, city in zip(users, cities, strict=True):
        old = home.get(user)
        if old is not None:
            counts[old] -= 1
        home[user] = city
        counts[city] += 1
    return counts


def _count() -> ks.Topology:
    builder = ks.StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    counts = users.group_by(lambda user, city: (city, user), key=str, value=str).count()
    counts.to_stream().to("out", key=str, value=int)
    return builder.build()

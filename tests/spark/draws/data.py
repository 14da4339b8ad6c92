"""Random input: records with skewed, jittered and bursty times, in topics that cover different spans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from kstreams.log.partitioning import partitions_of
from tests.columns.random_topologies import NUMBERS, PRICES
from tests.spark.running import Row

START_MS = 10_000_000
HOUR_MS = 3_600_000
SHOPS = ["x", "y", "Z", "ß"]
KEYS = ["a", "b", "c", "é", "a1", "b2", "d"]


@dataclass(frozen=True)
class Times:
    """How the times of one data set are drawn.

    Parameters
    ----------
    gap_ms : int
        Between two records of a topic, on average.
    bursts : float
        Share of the records that have the time of the one before.
    skew_ms : tuple of int
        How far each partition is ahead.
    jitter_ms : int
        How far a record may lie behind its place.
    outliers : float
        Share of the records that lie up to three seconds off.
    """

    gap_ms: int
    bursts: float
    skew_ms: tuple[int, ...]
    jitter_ms: int
    outliers: float

    @classmethod
    def draw(cls, chance: Random, partitions: int) -> Times:
        """In half of the draws the records of every partition are in order."""
        skews = [0, 0, 0, 900, HOUR_MS] if chance.random() < 0.6 else [0]
        skew = tuple(chance.choice(skews) for _ in range(partitions))
        jitter, outliers = (0, 0.0) if chance.random() < 0.5 else (chance.choice([50, 600]), chance.choice([0, 0.03]))
        return cls(chance.choice([3, 40, 120]), chance.choice([0, 0.3, 0.9]), skew, jitter, outliers)

    def of(self, chance: Random, start_ms: int, partitions: Iterable[int]) -> list[int]:
        """A time for every record of a topic, by the partition that it goes to."""
        at, found = start_ms, []
        for partition in partitions:
            at += 0 if chance.random() < self.bursts else chance.randint(1, 2 * self.gap_ms)
            off = chance.randint(-3_000, 3_000) if chance.random() < self.outliers else 0
            found.append(at + self.skew_ms[partition] + off - chance.randint(0, self.jitter_ms))
        return found


def draw_rows(chance: Random, topic: str, keys: list[str], times: Times, count: int) -> list[Row]:
    """The records of a topic, each in the partition of its key; those without a key in any."""
    partitions = len(times.skew_ms)
    chosen: list[str | None] = [None if chance.random() < 0.04 else chance.choice(keys) for _ in range(count)]
    encoded = pa.array([key and key.encode() for key in chosen], pa.binary())
    places = [chance.randrange(partitions) if at < 0 else at for at in partitions_of(encoded, partitions).tolist()]
    start = START_MS + chance.choice([0, 0, 2_000, 20_000])
    moments = times.of(chance, start, places)
    return [Row(topic, key, _order(chance), at, place) for key, at, place in zip(chosen, moments, places, strict=True)]


def _order(chance: Random) -> dict[str, Any] | None:
    if chance.random() < 0.08:
        return None
    return {
        "shop": chance.choice([None, *SHOPS]),
        "amount": chance.choice(NUMBERS),
        "price": chance.choice(PRICES),
        "paid": chance.choice([None, True, False]),
    }

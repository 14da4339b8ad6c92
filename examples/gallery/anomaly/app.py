"""Anomalies: readings that are more than four standard deviations from the mean of all before them."""

import math

import msgspec

import kstreams as ks

READINGS_FIRST = 30
"""Readings that a sensor gives before one can be an anomaly."""


class Baseline(msgspec.Struct, frozen=True):
    """Mean and squared deviations of a sensor so far (Welford's method), and how far off its last reading was."""

    readings: int = 0
    mean: float = 0.0
    squares: float = 0.0
    last: float = 0.0
    z_score: float = 0.0


class Anomaly(msgspec.Struct, frozen=True):
    reading: float
    z_score: float


def follow(sensor: str, reading: float, before: Baseline) -> Baseline:
    deviation = math.sqrt(before.squares / before.readings) if before.readings >= READINGS_FIRST else math.inf
    z_score = (reading - before.mean) / deviation if deviation else 0.0
    readings = before.readings + 1
    mean = before.mean + (reading - before.mean) / readings
    squares = before.squares + (reading - before.mean) * (reading - mean)
    return Baseline(readings, mean, squares, reading, z_score)


config = {"application.id": "anomaly", "statestore.cache.max.bytes": 0}  # 0: each reading is looked at
topology = ks.StreamsBuilder()

readings = topology.stream("readings", key=str, value=float)
baselines = readings.group_by_key().aggregate(Baseline, follow, value=Baseline, materialized="baselines")
(
    baselines.to_stream()
    .filter(ks.col("z_score").abs() > 4)
    .map_values(ks.struct(reading=ks.col("last"), z_score=ks.col("z_score")), value=Anomaly)
    .to("anomalies")
)

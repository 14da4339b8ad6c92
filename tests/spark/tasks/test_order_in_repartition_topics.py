"""A repartition topic stands in the same order on Spark as natively: that of what tasks had read when they wrote."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

TYPES = {"in": (str, str), "out": (str, str)}
TEXTS = {"key": str, "value": str}


def written(stream: Any) -> None:
    stream.repartition(name="one", partitions=1, **TEXTS).to("out")


def filtered(builder: ks.StreamsBuilder) -> None:
    written(builder.stream("in", **TEXTS).filter(lambda key, value: key != "-"))


def by_expression(builder: ks.StreamsBuilder) -> None:
    written(builder.stream("in", **TEXTS).filter(ks.key != "-"))


def suppressed(builder: ks.StreamsBuilder) -> None:
    table = builder.stream("in", **TEXTS).to_table().suppress(ks.Suppressed.until_time_limit(20))
    written(table.to_stream())


def windows_of_windows(builder: ks.StreamsBuilder) -> None:
    """Final counts of short windows, and how many of them each long one takes before it closes."""
    short = builder.stream("in", **TEXTS).group_by_key().windowed_by(ks.TimeWindows(size=7, grace=3)).count()
    final = short.suppress(ks.Suppressed.until_window_closes()).to_stream(lambda key, _: key.key, key=str)
    long = final.group_by(lambda key, value: "all", name="one", key=str, value=int)
    counted = long.windowed_by(ks.TimeWindows(size=25, grace=5)).count()
    counted.to_stream(lambda key, _: str(key.window.start_ms), key=str).map_values(str, value=str).to("out")


def skewed(seed: int) -> list[Row]:
    """Three partitions whose records are late, early, of one moment, and filtered out."""
    rng, rows = random.Random(seed), []
    for partition in range(3):
        time = 40 * partition
        for i in range(60):
            time += rng.choice([0, 0, 1, 2, 5])
            far = rng.choice([0, 0, 0, 0, 30, -30])
            rows.append(Row("in", rng.choice("ab-"), f"{partition}.{i}", max(0, time + far), partition))
    return rows


NAMED = [Row("in", key, f"{time}", time, p) for p, key, time in ((0, "-", 100), (0, "k", 5), (1, "k", 50))]


@pytest.mark.parametrize(
    ("rows", "per_step"),
    [(NAMED, 1000), (NAMED, 1), (skewed(1), 1000), (skewed(2), 50)],
    ids=["the example in one step", "in three", "skewed in one", "in four"],
)
@pytest.mark.parametrize("build", [filtered, by_expression, suppressed, windows_of_windows])
def test_it_stands_as_it_does_natively(
    spark: Any, tmp_path: Path, build: Callable[[ks.StreamsBuilder], None], rows: list[Row], per_step: int
) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    steps = {"spark.kstreams.max.records": per_step}
    app = Application(spark, tmp_path, builder, TYPES, **steps).create("in", partitions=3).create("out", partitions=1)
    app.write(rows).run_natively()
    app.run()
    assert app.rows("out") == app.rows("out", prefix="")

"""One application over the same rows on the test driver, natively and on Spark, each run ended and started again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kstreams as ks
from tests.spark.running import Application, Row, Types, changelog

Updates = dict[Any, list[tuple[Any, int]]]
"""By key, the values that were written and their timestamps, in order."""


def on_driver(topology: ks.Topology, types: Types, rows: Sequence[Row], topic: str = "out") -> Updates:
    """What the test driver writes."""
    application = Application(None, Path(), topology, types)
    return changelog(application.driver_rows(topic, rows))


def natively(
    folder: Path,
    topology: ks.Topology,
    types: Types,
    rows: Sequence[Row],
    topic: str = "out",
    *,
    stays_open: bool = False,
    **settings: Any,
) -> Updates:
    """What the native engine writes in three runs: the second finds its state, the third restores it.

    `stays_open`: the input ends with the last run only.
    """
    application = Application(None, folder, topology, types).create("in", topic)
    for number, part in enumerate(_parts(rows)):
        application.write(part).run_natively(until_end=number == 2 or not stays_open, **settings)
        if number:
            shutil.rmtree(folder / "state")
    return changelog(application.rows(topic, prefix=""))


def on_spark(
    spark: Any,
    folder: Path,
    topology: ks.Topology,
    types: Types,
    rows: Sequence[Row],
    topic: str = "out",
    *,
    stays_open: bool = False,
    **settings: Any,
) -> Updates:
    """What Spark writes in three runs, on the task path unless settings say otherwise; see `natively`."""
    application = Application(spark, folder, topology, types).create("in", topic)
    for number, part in enumerate(_parts(rows)):
        application.write(part).run(until_end=number == 2 or not stays_open, **settings)
    return changelog(application.rows(topic))


def _parts(rows: Sequence[Row]) -> list[Sequence[Row]]:
    third = len(rows) // 3
    return [rows[:third], rows[third : 2 * third], rows[2 * third :]]

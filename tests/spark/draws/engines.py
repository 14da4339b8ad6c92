"""Runs a draw on one of the engines, from its input to its results, in a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kstreams.errors import ProcessingError
from tests.spark.draws.draw import INPUTS, OUTPUTS, TYPES, Draw
from tests.spark.draws.results import Results, record
from tests.spark.running import Application

EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}


def natively(draw: Draw, folder: Path, **settings: Any) -> Results:
    """On the native engine, to the end of its input."""
    app = application(draw, folder)
    app.run_natively(**settings)
    return results(app, "")


def interrupted(draw: Draw, folder: Path, after: int, **settings: Any) -> Results:
    """On the native engine, where an error ends the first run after some records, and a second run goes on."""
    app = application(draw, folder)
    interruption = Interruption(after)
    app.topology = draw.topology(interruption)
    try:
        app.run_natively(**EXACTLY_ONCE, **settings)
    except ProcessingError:
        app.run_natively(**EXACTLY_ONCE, **settings)
    return results(app, "")


def on_spark(draw: Draw, folder: Path, spark: Any, **settings: Any) -> Results:
    """On Spark, to the end of its input."""
    app = application(draw, folder, spark)
    app.run(**settings)
    return results(app, "spark-")


def stopped(
    draw: Draw, folder: Path, spark: Any, after: int, first: Mapping[str, Any], then: Mapping[str, Any]
) -> Results:
    """On Spark, stopped after some steps; a second run with other settings goes on."""
    app = application(draw, folder, spark)
    app.run(until_end=False, stop_after=after, **first)
    app.run(**then)
    return results(app, "spark-")


class Interruption:
    """Raises an error, once, when so many records have passed."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, key: Any, value: Any) -> None:
        self._left -= 1
        if self._left == 0:
            raise RuntimeError("interrupted")


def application(draw: Draw, folder: Path, spark: Any = None) -> Application:
    """The application of a draw, with its input written."""
    app = Application(spark, folder, draw.topology(), TYPES)
    app.create(*INPUTS, "odd", "even", "spark-odd", "spark-even", partitions=draw.partitions)
    return app.write(draw.rows)


def results(app: Application, prefix: str) -> Results:
    """All that it has written."""
    existing = set(app.topics())
    return {
        topic: [[record(*row) for row in rows] for rows in app.partitions(topic, prefix)]
        for topic in OUTPUTS
        if prefix + topic in existing
    }

"""Waiting records in tasks on Spark: the wall clock moves with the steps, and they wait from step to step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.clock import ManualClock
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row

TYPES = {"in": (str, str), "out": (str, str), "parked": (str, str)}


def asking(down: Path) -> ks.StreamsBuilder:
    """Texts in capitals by a call that fails for "bad" as long as a file exists."""

    def call(value: str) -> str:
        if value == "bad" and down.exists():
            raise TimeoutError(value)
        return value.upper()

    builder = ks.StreamsBuilder()
    retry = ks.Retry(backoff="10s", attempts=3, on=TimeoutError)
    builder.stream("in", key=str, value=str).map_values(call, retry=retry, park="parked").to("out")
    return builder


@pytest.mark.spark
def test_a_record_that_fails_waits_from_run_to_run(spark: Any, tmp_path: Path) -> None:
    down = tmp_path / "down"
    down.touch()
    clock = ManualClock(1_000_000)
    app = Application(spark, tmp_path, asking(down), TYPES)
    app.create("in", "out", "parked", "spark-parked", partitions=1)
    app.write([Row("in", "a", "bad", 1), Row("in", "a", "second", 2), Row("in", "b", "fine", 3)]).run(clock=clock)
    assert app.rows("out") == [("b", "FINE", 3)]
    down.unlink()
    clock.advance(10_000)
    app.run(clock=clock)
    assert app.rows("out") == [("b", "FINE", 3)], "without a record there is no step"
    app.write([Row("in", "b", "next", 4)]).run(clock=clock)
    assert app.rows("out") == [("b", "FINE", 3), ("b", "NEXT", 4), ("a", "BAD", 1), ("a", "SECOND", 2)]


@pytest.mark.spark
def test_after_its_last_attempt_it_is_parked_in_the_topic_with_the_prefix(spark: Any, tmp_path: Path) -> None:
    down = tmp_path / "down"
    down.touch()
    clock = ManualClock(1_000_000)
    app = Application(spark, tmp_path, asking(down), TYPES)
    app.create("in", "out", "parked", "spark-parked", partitions=1).write([Row("in", "a", "bad", 1)])
    for number in range(3):
        app.write([Row("in", "b", "fine", number)]).run(clock=clock)
        clock.advance(20_000)
    assert app.rows("parked") == [("a", "bad", 1)]


@pytest.mark.spark
def test_a_delayed_record_comes_with_a_later_step(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).delay(for_="10s").to("out")
    clock = ManualClock(1_000_000)
    app = Application(spark, tmp_path, builder, TYPES).create("in", "out", partitions=1)
    app.write([Row("in", "a", "x", 1_000_000)]).run(clock=clock)
    assert app.rows("out") == []
    clock.advance(10_000)
    app.write([Row("in", "b", "y", 1_010_000)]).run(clock=clock)
    assert ("a", "x", 1_000_000) in app.rows("out")


def test_explain_tells_why_they_run_in_tasks(tmp_path: Path) -> None:
    builder = asking(tmp_path)
    builder.stream("others", key=str, value=str).delay(for_="1s", name="later").to("out")
    rows = engine.explain(builder.build(), Config.of({"application.id": "app", "spark.kstreams.path": "relational"}))
    reasons = {row.operator: (row.path, row.why) for row in rows}
    assert reasons["KSTREAM-MAPVALUES-0000000001"] == ("task", "failed calls are repeated by tasks")
    assert reasons["later"] == ("task", "its records wait for the wall clock, in stores of tasks")

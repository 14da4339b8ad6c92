"""The stores of an application on Spark are read from its checkpoint, as any of the last steps has left them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.app import App, sql
from kstreams.config import Config
from kstreams.errors import ConfigError, StateError
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

TYPES = {"orders": (str, int), "rates": (str, float)}
AMOUNTS = [("a", 5), ("b", 7), ("a", 1)]


def shop() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.global_table("rates", key=str, value=float, materialized="rates")
    customers = builder.stream("orders", key=str, value=int).group_by_key()
    customers.reduce(lambda total, amount: total + amount, materialized="sums")
    customers.count(ks.Materialized("counts", store="memory"))
    customers.windowed_by(ks.TimeWindows(size=2, grace=5)).count("per-window")
    return builder.build()


@pytest.fixture
def app(spark: Any, tmp_path: Path) -> Application:
    """Three orders have been processed in a step each; the checkpoint keeps two steps and those before them."""
    app = Application(spark, tmp_path, shop(), TYPES, **{"spark.kstreams.snapshot.every": 2})
    app.create("orders", partitions=2).create("rates", partitions=1).write([Row("rates", "EUR", 1.5, 0)])
    for time, (customer, amount) in enumerate(AMOUNTS):
        app.write([Row("orders", customer, amount, time)]).run(until_end=False)
    return app


def asked(app: Application, query: str, step: int | None = None, engine: str = "spark") -> list[dict[str, Any]]:
    loaded = App(app.topology, Config.of(app.settings), Path("app.py"))
    rows: list[dict[str, Any]] = sql(loaded, query, engine=engine, step=step).to_pylist()
    return rows


def sums(app: Application, step: int | None = None) -> dict[str, int]:
    return {row["key"]: row["value"] for row in asked(app, "select key, value from sums", step)}


def test_the_last_step_answers(app: Application) -> None:
    assert sums(app) == {"a": 6, "b": 7}
    assert asked(app, "select key, value from counts order by key") == [
        {"key": "a", "value": 2},
        {"key": "b", "value": 1},
    ]
    windows = asked(app, 'select key, window_start, value from "per-window" order by window_start, key')
    assert [(row["key"], row["window_start"], row["value"]) for row in windows] == [
        ("a", 0, 1),
        ("b", 0, 1),
        ("a", 2, 1),
    ]
    assert asked(app, "select key, value from rates") == [{"key": "EUR", "value": 1.5}]


def test_earlier_steps_answer_too(app: Application) -> None:
    assert sums(app, step=0) == {"a": 5}
    assert sums(app, step=1) == {"a": 5, "b": 7}
    assert sums(app, step=2) == {"a": 6, "b": 7}


def test_a_step_that_is_not_kept_is_refused_with_those_that_are(app: Application) -> None:
    for time in range(10, 14):
        app.write([Row("orders", "c", 1, time)]).run(until_end=False)
    assert sums(app, step=4) == {"a": 6, "b": 7, "c": 2}
    with pytest.raises(StateError, match=r"does not keep step 0: it keeps 4 to 6\. spark\.kstreams\.snapshot\.every"):
        sums(app, step=0)
    with pytest.raises(StateError, match="does not keep step 7"):
        sums(app, step=7)


def test_an_application_goes_on_after_it_was_asked(app: Application) -> None:
    assert sums(app) == {"a": 6, "b": 7}
    app.write([Row("orders", "b", 3, 9)]).run(until_end=False)
    assert sums(app) == {"a": 6, "b": 10}


def test_before_the_first_step_there_is_nothing_to_ask(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, shop(), TYPES).create("orders", "rates")
    with pytest.raises(StateError, match="'app' has processed nothing on Spark"):
        sums(app)


def test_the_native_engine_knows_no_steps(app: Application) -> None:
    with pytest.raises(ConfigError, match="add --engine spark"):
        asked(app, "select * from sums", 0, "native")


def test_a_store_that_nothing_has_reached_is_an_empty_table(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=int).filter(lambda customer, amount: amount > 100)
    orders.group_by(lambda customer, amount: "all", key=str).count("large")
    app = Application(spark, tmp_path, builder.build(), TYPES)
    app.create("orders", partitions=2).write([Row("orders", "a", 5, 0)]).run(until_end=False)
    assert asked(app, "select key, value from large") == []
    with pytest.raises(StateError, match="no store 'small'"), ks.spark.StepStores(app.topology, app.settings) as stores:
        stores.store("small")

"""Joins with global tables on the relational path: each step meets what the table holds when it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ProcessingError
from kstreams.kernel.clock import SystemClock
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.runner import SparkRunner
from tests.spark.running import Application, Row
from tests.spark.test_relational_keyed import by_key
from tests.support.examples import few_of

pytestmark = pytest.mark.spark

RELATIONAL = {"spark.kstreams.path": "relational"}
TYPES = {"sales": (str, int), "shops": (int, str), "out": (str, str)}

Build = Callable[[ks.StreamsBuilder], None]


def sales(builder: ks.StreamsBuilder) -> Any:
    return builder.stream("sales", key=str, value=int)


def shops(builder: ks.StreamsBuilder) -> Any:
    return builder.global_table("shops", key=int, value=str)


def shop_of(key: str | None, n: int | None) -> int | None:
    return None if n is None or n == 9 else n % 4


def joined(builder: ks.StreamsBuilder) -> None:
    found = sales(builder).join(shops(builder), lambda n, shop: f"{n} at {shop}", key_selector=shop_of, value=str)
    found.to("out")


def left_joined(builder: ks.StreamsBuilder) -> None:
    """Of records without a key or a shop too."""

    def named(key: str | None, n: int, shop: str | None) -> str:
        return f"{key}: {n} at {shop}"

    sales(builder).left_join(shops(builder), named, key_selector=shop_of, with_key=True, value=str).to("out")


def joined_by_expressions(builder: ks.StreamsBuilder) -> None:
    found = sales(builder).filter(ks.value > 0).join(shops(builder), ks.right.value + "!", key_selector=ks.value)
    found.to("out", value=str)


def counted_behind(builder: ks.StreamsBuilder) -> None:
    """Spark keeps state behind the join: it is a query of its own."""
    found = sales(builder).join(shops(builder), lambda n, shop: shop, key_selector=shop_of, value=str)
    found.group_by_key().reduce(lambda old, new: f"{old},{new}").to_stream().to("out")


BUILDS: tuple[Build, ...] = (joined, left_joined, joined_by_expressions, counted_behind)


def application(spark: Any, folder: Path, build: Build, **settings: Any) -> Application:
    builder = ks.StreamsBuilder()
    build(builder)
    app = Application(spark, folder, builder, TYPES, **settings)
    return app.create("sales", partitions=1).create("shops")


def input_rows() -> list[Row]:
    """Three shops of four, one of which has another name by now and one that is gone; sales of five people."""
    names = [(0, "old"), (1, "one"), (2, "two"), (0, "new"), (2, None), (3, "three")]
    found = [Row("shops", number, name, at + 1) for at, (number, name) in enumerate(names)]
    for at in range(60):
        key, value = None if at % 17 == 0 else f"k{at % 5}", None if at % 13 == 0 else at % 11
        found.append(Row("sales", key, value, 1_000 + at, 0))
    return found


@pytest.mark.parametrize("build", few_of(BUILDS, 1))
def test_the_rows_of_each_key_are_those_of_tasks_and_of_the_native_engine(
    spark: Any, tmp_path: Path, build: Build
) -> None:
    app = application(spark, tmp_path, build, **{"spark.kstreams.max.records": 25}).write(input_rows())
    paths = {row.operator: row.path for row in engine.explain(app.topology, Config.of(RELATIONAL))}
    (table,) = (name for name, path in paths.items() if path == "task")
    assert type(app.topology.graph[table]).__name__ == "GlobalTableSource"
    app.run_natively()
    found = {"native": by_key(app.rows("out", ""))}
    for path in ("relational", "task"):
        where = {"spark.kstreams.prefix": f"{path}-", "spark.kstreams.checkpoint": str(tmp_path / path)}
        app.run(**where, **{"spark.kstreams.path": path})
        found[path] = by_key(app.rows("out", f"{path}-"))
    assert found["native"]
    assert found == dict.fromkeys(found, found["native"])


@pytest.mark.parametrize("build", few_of([joined, counted_behind], 1))
def test_a_step_meets_the_table_as_it_has_become(spark: Any, tmp_path: Path, build: Build) -> None:
    app = application(spark, tmp_path, build)
    app.write([Row("shops", 1, "one", 1), *(Row("sales", "a", 1, at) for at in (10, 20))])
    config = Config.of(app.settings | RELATIONAL | {"spark.kstreams.max.records": 1})

    def rename(progress: Any) -> None:
        if progress.commits == 1:
            app.write([Row("shops", 1, "uno", 2)])

    with app.opened() as log:
        SparkRunner(app.topology, config, spark, log, SystemClock(), rename).run(once=True)
    behind = build is counted_behind
    assert [value for _, value, _ in app.rows("out")] == (["one", "one,uno"] if behind else ["1 at one", "1 at uno"])


def test_what_a_selector_raises_names_operator_line_and_record(spark: Any, tmp_path: Path) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        found = sales(builder).join(shops(builder), lambda n, shop: shop, key_selector=lambda key, n: 1 // n, value=str)
        found.to("out")

    app = application(spark, tmp_path, build, **RELATIONAL).write([Row("shops", 1, "one", 1), Row("sales", "a", 0, 2)])
    with pytest.raises(ProcessingError, match=r"join\(\) at .*test_relational_global_tables.*sales-0@0: ZeroDiv"):
        app.run()

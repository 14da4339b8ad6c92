"""A key and a value by two expressions: columns on the relational path, with the rows of tasks and of native runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark


class Order(msgspec.Struct):
    item: str
    amount: int
    price: float | None = None


ROWS = [
    Row("in", "a", Order("tea", 3, 1.5), 1),
    Row("in", "b", Order("cup", 1), 2),
    Row("in", None, Order("pot", 2, 20.0), 3),
    Row("in", "a", None, 4),
    Row("in", "c", Order("größe", -7, 0.0), 5),
]


def worths(builder: ks.StreamsBuilder) -> None:
    sold = builder.stream("in", key=str, value=Order).filter(~ks.col("amount").is_null())
    worth = sold.map((ks.col("item").str.upper(), ks.col("price") * ks.col("amount")), key=str, value=float)
    worth.map((ks.key.str.upper().str.lower(), ks.value * 2), key=str, value=float).to("out")


def explained(builder: ks.StreamsBuilder) -> Any:
    return engine.explain(builder.build(), Config.of({"application.id": "app", "spark.kstreams.path": "relational"}))


def test_both_paths_the_native_engine_and_the_driver_agree(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    worths(builder)
    types = {"in": (str, Order), "out": (str, float)}
    app = Application(spark, tmp_path, builder, types).create("in", partitions=1).write(ROWS)
    app.run_natively()
    found = {"driver": app.driver_rows("out", ROWS), "native": app.rows("out", prefix="")}
    for path in ("relational", "task"):
        of_path = {"spark.kstreams.path": path, "spark.kstreams.prefix": f"{path}-"}
        app.run(**of_path, **{"spark.kstreams.checkpoint": str(tmp_path / path)})
        found[path] = app.rows("out", prefix=f"{path}-")
    assert len(found["driver"]) == 4
    assert found == dict.fromkeys(found, found["driver"])


def test_two_expressions_need_no_tasks() -> None:
    builder = ks.StreamsBuilder()
    worths(builder)
    assert {row.path for row in explained(builder)} == {"relational"}


def test_two_expressions_that_build_objects_run_as_tasks() -> None:
    builder = ks.StreamsBuilder()
    made = (ks.col("item"), ks.struct(amount=ks.col("amount")))
    builder.stream("in", key=str, value=Order).map(made, key=str, name="made").to("out")
    rows = {row.operator: row for row in explained(builder)}
    assert rows["made"].why == "ks.struct builds objects"
    assert {row.path for row in rows.values()} == {"task"}

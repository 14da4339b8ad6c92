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


class Place(msgspec.Struct, frozen=True):
    item: str


def places(builder: ks.StreamsBuilder) -> None:
    place = ks.struct(item=ks.col("item"))
    orders = builder.stream("in", key=str, value=Order).filter(~ks.col("item").is_null())
    stock = builder.global_table("stock", key=Place, value=str)
    stored = orders.left_join(stock, ks.right.value.fill_null("nowhere"), key_selector=place)
    stored.map((ks.struct(item=ks.value), ks.key), key=Place, value=str).to("out", key=Place, value=str)
    orders.group_by(place, key=Place).count().to_stream(ks.struct(item=ks.lit("all")), key=Place).to("counts")


def test_a_struct_as_key_is_of_its_class_on_every_engine(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    places(builder)
    types = {"in": (str, Order), "stock": (Place, str), "out": (Place, str), "counts": (Place, int)}
    app = Application(spark, tmp_path, builder, types).create("in", "stock", "out", "counts", partitions=1)
    rows = [Row("stock", Place("tea"), "cellar", 0), *ROWS]
    app.write(rows).run_natively()
    outputs = [("out", str), ("counts", int)]
    drivers = {topic: app.driver_rows(topic, rows) for topic, _ in outputs}
    assert [(key, value) for key, value, _ in drivers["out"]] == [
        (Place("cellar"), "a"),
        (Place("nowhere"), "b"),
        (Place("nowhere"), None),
        (Place("nowhere"), "c"),
    ]
    assert {key for key, _, _ in drivers["counts"]} == {Place("all")}
    for path in ("relational", "task"):
        of_path = {"spark.kstreams.path": path, "spark.kstreams.prefix": f"{path}-"}
        app.run(**of_path, **{"spark.kstreams.checkpoint": str(tmp_path / path)})
    for topic, _ in outputs:
        natively = app.rows(topic, prefix="")
        assert sorted(natively, key=repr) == sorted(drivers[topic], key=repr)
        assert app.rows(topic, prefix="relational-") == app.rows(topic, prefix="task-") == natively

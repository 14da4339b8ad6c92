"""Topics of Avro on Spark: tasks ask the schema registry in their workers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.runtime.spark.engine import explain
from kstreams.serdes.base import SerdeUse
from tests.native.world import World
from tests.serdes.test_avro_apps import ORDERS, CustomerId, Order, Total, expected_totals, totals


def test_tasks_read_and_write_avro(spark: Any, tmp_path: Path) -> None:
    world = World(tmp_path, **{"schema.registry.url": "local:"})
    for topic in ("orders", "totals"):
        world.create(topic, 2)
    config = Config.of(world.settings)
    with closing(ApplicationRegistry(config)) as registry:

        def bound(serde: Any, topic: str, is_key: bool = False) -> Any:
            return serde.of_topic(SerdeUse(topic, is_key, config, registry))

        write = bound(ks.Avro(Order), "orders").serialize
        world.write("orders", [(str(order.id), write(order), order.id) for order in ORDERS])
        settings = {
            **world.settings,
            "spark.kstreams.checkpoint": str(tmp_path / "checkpoint"),
            "spark.kstreams.delta": "none",
            "spark.kstreams.prefix": "",
            "spark.kstreams.max.records": 25,
        }
        with ks.spark.start(totals(), spark, settings, until_end=True) as run:
            assert run.await_termination(120)
        keys, values = bound(ks.Avro(CustomerId), "totals", True), bound(ks.Avro(Total), "totals")
        found = world.table("totals", keys, values)
    assert found == {key: Total(key, amount) for key, amount in expected_totals().items()}


def test_explain_says_that_tasks_ask_the_registry() -> None:
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=ks.Avro(Order))
    orders.filter(ks.col("amount") > 1.0).to("large", key=str, value=ks.Avro(Order))
    config = Config.of(application_id="app")
    why = "each record names its schema in a registry, which tasks ask: from_avro takes one schema for all"
    assert {(each.path, each.why) for each in explain(builder.build(), config)} == {("task", why)}


pytestmark = pytest.mark.spark

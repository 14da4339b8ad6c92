"""Topics of Protobuf on Spark: descriptors are made in the workers, where tasks ask the schema registry."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.serdes.base import SerdeUse
from tests.native.world import World
from tests.serdes.test_protobuf_apps import ORDERS, CustomerId, Order, Total, expected_totals, totals

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_tasks_read_and_write_protobuf(spark: Any, tmp_path: Path) -> None:
    world = World(tmp_path, **{"schema.registry.url": "local:"})
    for topic in ("orders", "totals"):
        world.create(topic, 2)
    config = Config.of(world.settings)
    with closing(ApplicationRegistry(config)) as registry:

        def bound(serde: Any, topic: str, is_key: bool = False) -> Any:
            return serde.of_topic(SerdeUse(topic, is_key, config, registry))

        write = bound(ks.Protobuf(Order), "orders").serialize
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
        keys, values = bound(ks.Protobuf(CustomerId), "totals", True), bound(ks.Protobuf(Total), "totals")
        assert world.table("totals", keys, values) == expected_totals()
